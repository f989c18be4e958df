#include <atomic>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "common/core/async.hpp"
#include "common/core/task_group.hpp"
#include "support/run_coro.hpp"
#include "support/run_on.hpp"
#include "support/wait.hpp"

namespace gitops {
namespace {

using test::run_coro;

TEST(RunOn, RunsOnThePoolAndResumesOnTheLoop) {
  asio::thread_pool pool(2);
  run_coro([&pool]() -> Task<> {
    const auto loop_thread = std::this_thread::get_id();
    const auto worker = co_await test::run_on(pool, [] { return std::this_thread::get_id(); });
    EXPECT_NE(worker, loop_thread);
    EXPECT_EQ(std::this_thread::get_id(), loop_thread);
  });
}

TEST(RunOn, BringsMoveOnlyResultsAndPlainCallsBack) {
  asio::thread_pool pool(1);
  run_coro([&pool]() -> Task<> {
    auto text = std::make_unique<std::string>("borrowed");
    const auto moved = co_await test::run_on(
        pool, [owned = std::move(text)]() mutable { return std::move(owned); });
    EXPECT_EQ(*moved, "borrowed");
    int calls = 0;
    co_await test::run_on(pool, [&calls] { ++calls; });
    EXPECT_EQ(calls, 1);
    const auto result = co_await test::run_on(
        pool, []() -> Result<int> { return fail(ErrorCode::not_found, "nothing here"); });
    EXPECT_EQ(result.error().code, ErrorCode::not_found);
  });
}

TEST(RunOn, BringsExceptionsBack) {
  asio::thread_pool pool(1);
  run_coro([&pool]() -> Task<> {
    std::string what;
    try {
      co_await test::run_on(pool, [] { throw std::runtime_error("on the pool"); });
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_EQ(what, "on the pool");
  });
}

TEST(RunOn, WaitsForTheFunctionAlsoWhenCancelled) {
  asio::thread_pool pool(1);
  run_coro([&pool]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TaskGroup group(executor);
    std::binary_semaphore go(0);
    std::atomic<bool> started = false;
    std::atomic<bool> finished = false;
    bool resumed = false;
    bool thrown = false;
    group.spawn("offloads", [&]() -> Task<> {
      const int value = co_await test::run_on(pool, [&] {
        started = true;
        go.acquire();
        finished = true;
        return 5;
      });
      EXPECT_EQ(value, 5);
      resumed = true;
      try {
        co_await sleep_until(kNever);
      } catch (const boost::system::system_error&) {
        thrown = true;
      }
    });
    EXPECT_TRUE(co_await test::eventually([&] { return started.load(); }, "the task"));
    group.cancel();
    for (int i = 0; i < 10; ++i) co_await asio::post(executor, use_task);
    EXPECT_FALSE(resumed);
    EXPECT_EQ(group.size(), 1U);
    go.release();
    co_await group.join();
    EXPECT_TRUE(finished);
    EXPECT_TRUE(resumed);
    EXPECT_TRUE(thrown);
  });
}

TEST(RunOn, KeepsManyCallsApart) {
  asio::thread_pool pool(2);
  run_coro([&pool]() -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor);
    int sum = 0;
    for (int i = 1; i <= 200; ++i) {
      group.spawn("adds", [&pool, &sum, i]() -> Task<> {
        sum += co_await test::run_on(pool, [i] { return i; });
      });
    }
    co_await group.join();
    EXPECT_EQ(sum, 200 * 201 / 2);
  });
}

}  // namespace
}  // namespace gitops
