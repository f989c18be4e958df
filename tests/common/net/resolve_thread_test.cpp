#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "common/net/resolve.hpp"
#include "support/run_coro.hpp"

namespace gitops::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ResolverThreads, TwoLoopsShareAResolver) {
  Metrics metrics;
  Resolver resolver(metrics);
  const auto look_up_often = [&resolver] {
    test::run_coro(
        [&resolver]() -> Task<> {
          const auto executor = co_await asio::this_coro::executor;
          for (int round = 0; round < 25; ++round) {
            TaskGroup tasks(executor);
            for (int i = 0; i < 4; ++i) {
              tasks.spawn("look up", [&resolver]() -> Task<> {
                CO_ASSERT_OK(
                    co_await resolver.resolve("localhost", 80, deadline_after(seconds(20))));
              });
            }
            co_await tasks.join();
            resolver.look_again("localhost");
          }
        },
        seconds(60));
  };
  std::jthread other(look_up_often);
  look_up_often();
}

// The answer arrives after all waiters have left, and after the loop was destroyed.
TEST(ResolverThreads, LateAnswersHurtNobody) {
  Metrics metrics;
  for (int i = 0; i < 25; ++i) {
    const auto busy = std::make_shared<std::latch>(1);
    const auto answered = std::make_shared<std::atomic<bool>>(false);
    Resolver resolver(metrics, {.threads = 1, .look_up = [busy, answered](const std::string& host) {
                                  busy->wait();
                                  *answered = true;
                                  return look_up(host);
                                }});
    test::run_coro([&]() -> Task<> {
      EXPECT_FALSE(co_await resolver.resolve("localhost", 80, deadline_after(milliseconds(1))));
      if (i % 2 == 0) resolver.look_again("localhost");
      if (i % 3 == 0) busy->count_down();
    });
    if (i % 3 != 0) busy->count_down();
  }
}

TEST(ResolverThreads, LookupsOutliveTheLoopThatAsked) {
  Metrics metrics;
  for (int i = 0; i < 25; ++i) {
    const auto busy = std::make_shared<std::latch>(1);
    Resolver resolver(metrics, {.threads = 1, .look_up = [busy](const std::string& host) {
                                  busy->wait();
                                  return look_up(host);
                                }});
    {
      Loop loop(1);
      for (const std::string host : {"localhost", "localhost", "other.invalid"}) {
        asio::co_spawn(
            loop.get_executor(),
            [&resolver, host]() -> Task<> { (void)co_await resolver.resolve(host, 80, kNever); },
            [](const std::exception_ptr&) {});
      }
      loop.poll();
      if (i % 2 == 0) busy->count_down();
    }
    if (i % 2 != 0) busy->count_down();
  }
}

}  // namespace
}  // namespace gitops::net
