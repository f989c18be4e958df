#include "common/net/resolve.hpp"

#include <latch>

#include <boost/asio/thread_pool.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "support/run_coro.hpp"

namespace gitops::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Resolver, LiteralsNeedNoLookup) {
  test::run_coro([]() -> Task<> {
    asio::thread_pool pool(1);
    pool.join();  // nothing can run there any more
    Resolver resolver(co_await asio::this_coro::executor, pool);
    const auto four = co_await resolver.resolve("10.1.2.3", 80, kNever);
    CO_ASSERT_OK(four);
    EXPECT_EQ(four->size(), 1u);
    EXPECT_EQ(four->front().address().to_string(), "10.1.2.3");
    EXPECT_EQ(four->front().port(), 80);
    const auto six = co_await resolver.resolve("fd00::1", 443, kNever);
    CO_ASSERT_OK(six);
    EXPECT_EQ(six->front().address().to_string(), "fd00::1");
  });
}

TEST(Resolver, FindsLocalhost) {
  test::run_coro([]() -> Task<> {
    asio::thread_pool pool(1);
    Resolver resolver(co_await asio::this_coro::executor, pool);
    for (const std::uint16_t port : {std::uint16_t{80}, std::uint16_t{81}}) {
      const auto found = co_await resolver.resolve("localhost", port, deadline_after(seconds(4)));
      CO_ASSERT_OK(found);
      EXPECT_FALSE(found->empty());
      for (const auto& endpoint : *found) {
        EXPECT_TRUE(endpoint.address().is_loopback());
        EXPECT_EQ(endpoint.port(), port);
      }
    }
  });
}

TEST(Resolver, UnknownHostsAreNamed) {
  test::run_coro([]() -> Task<> {
    asio::thread_pool pool(1);
    Resolver resolver(co_await asio::this_coro::executor, pool);
    const auto unknown =
        co_await resolver.resolve("no-such-host.invalid", 80, deadline_after(seconds(4)));
    EXPECT_FALSE(unknown);
    // A machine without name servers cannot know.
    EXPECT_EQ(unknown.error().code, unknown.error().message.contains("no such host")
                                        ? ErrorCode::not_found
                                        : ErrorCode::unavailable);
    EXPECT_THAT(unknown.error().message,
                testing::StartsWith("lookup of no-such-host.invalid failed: "));
  });
}

TEST(Resolver, WaitersLeaveALookupThatHangs) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    std::latch busy(1);
    asio::thread_pool pool(1);
    asio::post(pool, [&] { busy.wait(); });  // stands for a name server that does not answer
    {
      Resolver resolver(executor, pool);
      const auto late =
          co_await resolver.resolve("localhost", 80, deadline_after(milliseconds(20)));
      EXPECT_FALSE(late);
      EXPECT_EQ(late.error().code, ErrorCode::timeout);

      bool returned = false;
      TaskGroup tasks(executor);
      tasks.spawn("resolve", [&]() -> Task<> {
        const auto never = co_await resolver.resolve("localhost", 80, kNever);
        returned = never.has_value();
      });
      co_await sleep_for(milliseconds(5));
      tasks.cancel();
      co_await tasks.join();
      EXPECT_FALSE(returned);
    }
    busy.count_down();
    pool.join();
  });
}

TEST(Resolver, EqualLookupsAreOneAndAreRemembered) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    std::latch busy(1);
    asio::thread_pool pool(1);
    asio::post(pool, [&] { busy.wait(); });
    Resolver resolver(executor, pool);
    int found = 0;
    TaskGroup tasks(executor);
    for (int i = 0; i < 5; ++i) {
      tasks.spawn("resolve", [&]() -> Task<> {
        const auto result = co_await resolver.resolve("localhost", 80, deadline_after(seconds(4)));
        found += result ? 1 : 0;
      });
    }
    co_await sleep_for(milliseconds(5));
    busy.count_down();
    co_await tasks.join();
    EXPECT_EQ(found, 5);
    pool.join();  // a further lookup would have nowhere to run
    CO_ASSERT_OK(co_await resolver.resolve("localhost", 80, deadline_after(milliseconds(50))));
    resolver.forget("localhost");
    EXPECT_FALSE(co_await resolver.resolve("localhost", 80, deadline_after(milliseconds(20))));
  });
}

}  // namespace
}  // namespace gitops::net
