#include <atomic>
#include <latch>
#include <thread>

#include <boost/asio/thread_pool.hpp>
#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "common/net/resolve.hpp"
#include "support/run_coro.hpp"

namespace gitops::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ResolverThreads, LookupsOfTwoLoopsShareAPool) {
  asio::thread_pool pool(2);
  const auto look_up_often = [&pool] {
    test::run_coro([&pool]() -> Task<> {
      const auto executor = co_await asio::this_coro::executor;
      Resolver resolver(executor, pool);
      for (int round = 0; round < 25; ++round) {
        TaskGroup tasks(executor);
        for (int i = 0; i < 4; ++i) {
          tasks.spawn("look up", [&resolver]() -> Task<> {
            CO_ASSERT_OK(co_await resolver.resolve("localhost", 80, deadline_after(seconds(4))));
          });
        }
        co_await tasks.join();
        resolver.forget("localhost");
      }
    });
  };
  std::jthread other(look_up_often);
  look_up_often();
}

// The answer comes when everybody who asked has left, and when the resolver itself is gone.
TEST(ResolverThreads, LateAnswersHurtNobody) {
  asio::thread_pool pool(1);
  test::run_coro([&pool]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    for (int i = 0; i < 25; ++i) {
      std::latch busy(1);
      asio::post(pool, [&busy] { busy.wait(); });
      {
        Resolver resolver(executor, pool);
        EXPECT_FALSE(co_await resolver.resolve("localhost", 80, deadline_after(milliseconds(1))));
        if (i % 2 == 0) resolver.forget("localhost");
        if (i % 3 == 0) busy.count_down();
      }
      if (i % 3 != 0) busy.count_down();
      std::atomic<bool> answered = false;
      asio::post(pool, [&answered] { answered = true; });
      while (!answered) co_await sleep_for(milliseconds(1));
    }
  });
}

}  // namespace
}  // namespace gitops::net
