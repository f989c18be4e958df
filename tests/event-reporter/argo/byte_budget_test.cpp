#include "event-reporter/argo/byte_budget.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "support/run_coro.hpp"

namespace gitops::reporter {
namespace {

using ::testing::ElementsAre;

TEST(ByteBudget, GivesSharesInTurnAndNeverMoreThanThereIs) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    ByteBudget budget(executor, 100);
    TaskGroup tasks(executor);
    std::vector<std::string> order;
    const auto hold = [&](std::string name, std::size_t bytes) {
      tasks.spawn(name, [&, name, bytes]() -> Task<> {
        const auto share = co_await budget.take(bytes);
        order.push_back(name);
        EXPECT_LE(budget.used(), 100U);
        co_await sleep_for(std::chrono::seconds(1));
      });
    };
    hold("60", 60);
    hold("too large", 500);
    hold("small", 10);
    hold("second", 20);
    co_await tasks.join();
    EXPECT_THAT(order, ElementsAre("60", "too large", "small", "second"));
    EXPECT_EQ(budget.used(), 0U);
  });
}

TEST(ByteBudget, AShareThatGrewHoldsBackTheOthers) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    ByteBudget budget(executor, 100);
    auto first = co_await budget.take(10);
    first.resize(300);
    TaskGroup tasks(executor);
    bool given = false;
    tasks.spawn("other", [&]() -> Task<> {
      const auto share = co_await budget.take(1);
      given = true;
    });
    co_await sleep_for(std::chrono::seconds(1));
    EXPECT_FALSE(given);
    first.resize(99);
    co_await tasks.join();
    EXPECT_TRUE(given);
    first = {};
    EXPECT_EQ(budget.used(), 0U);
  });
}

TEST(ByteBudget, WhoLeavesTheLineHoldsUpNobody) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    ByteBudget budget(executor, 100);
    auto first = co_await budget.take(50);
    TaskGroup leaving(executor);
    leaving.spawn("large", [&]() -> Task<> { co_await budget.take(100); });
    co_await asio::post(executor, use_task);
    TaskGroup tasks(executor);
    bool given = false;
    tasks.spawn("small", [&]() -> Task<> {
      const auto share = co_await budget.take(50);
      given = true;
    });
    co_await asio::post(executor, use_task);
    EXPECT_FALSE(given);
    leaving.cancel();
    co_await leaving.join();
    co_await tasks.join();
    EXPECT_TRUE(given);
  });
}

}  // namespace
}  // namespace gitops::reporter
