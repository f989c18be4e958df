#include <atomic>
#include <exception>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "common/core/wakeup.hpp"
#include "support/run_coro.hpp"

namespace gitops {
namespace {

using test::run_coro;

TEST(Wakeup, WakesAWaiterFromAnotherThread) {
  run_coro([]() -> Task<> {
    int written = 0;
    for (int i = 1; i <= 200; ++i) {
      const auto wakeup = std::make_shared<Wakeup>(co_await asio::this_coro::executor);
      const std::jthread other([&written, wakeup, i] {
        written = i;
        wakeup->ring();
      });
      CO_ASSERT_TRUE(co_await wakeup->wait(kNever));
      EXPECT_EQ(written, i);
    }
  });
}

TEST(Wakeup, RemembersThatItWasRung) {
  run_coro([]() -> Task<> {
    const auto wakeup = std::make_shared<Wakeup>(co_await asio::this_coro::executor);
    EXPECT_TRUE(wakeup->ring());
    EXPECT_TRUE(co_await wakeup->wait(kNever));
  });
}

TEST(Wakeup, TellsWhenTheWaiterHasLeft) {
  run_coro([]() -> Task<> {
    const auto wakeup = std::make_shared<Wakeup>(co_await asio::this_coro::executor);
    EXPECT_FALSE(co_await wakeup->wait(Clock::now()));
    EXPECT_FALSE(wakeup->ring());
  });
}

TEST(Wakeup, LetsACancelledWaiterGo) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const auto wakeup = std::make_shared<Wakeup>(executor);
    bool waits = false;
    bool aborted = false;
    TaskGroup tasks(executor);
    tasks.spawn("waits", [&]() -> Task<> {
      waits = true;
      try {
        co_await wakeup->wait(kNever);
      } catch (const boost::system::system_error& error) {
        aborted = error.code() == asio::error::operation_aborted;
      }
    });
    while (!waits) co_await asio::post(executor, use_task);
    tasks.cancel();
    co_await tasks.join();
    EXPECT_TRUE(aborted);
    EXPECT_FALSE(wakeup->ring());
  });
}

// The loop ends, and its coroutines with it, while the other thread rings.
TEST(Wakeup, OutlivesTheLoopOfItsWaiter) {
  for (int i = 0; i < 200; ++i) {
    std::shared_ptr<Wakeup> wakeup;
    std::jthread other;
    {
      Loop loop(1);
      wakeup = std::make_shared<Wakeup>(loop.get_executor());
      asio::co_spawn(
          loop.get_executor(), [wakeup]() -> Task<> { co_await wakeup->wait(kNever); },
          [](const std::exception_ptr&) {});
      loop.poll();
      other = std::jthread([wakeup] { wakeup->ring(); });
      if (i % 2 == 0) loop.poll();
    }
    other.join();
    wakeup->ring();
  }
}

}  // namespace
}  // namespace gitops
