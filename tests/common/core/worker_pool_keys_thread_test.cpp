#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "common/core/worker_pool.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::run_coro;
using testing::ElementsAre;

// Jobs that record their start and end.
class Journal {
 public:
  auto job(std::string line) {
    return [this, line = std::move(line)](const std::stop_token&) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
  }
  [[nodiscard]] std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

struct Block {
  std::atomic<bool> begun = false;
  std::latch open{1};
  auto job() {
    return [this](const std::stop_token&) {
      begun = true;
      open.wait();
    };
  }
};

TEST(WorkerPoolKeys, JobsOfAKeyRunOneAtATimeInOrder) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 4, .max_queued = 200, .max_per_key = 100}, metrics);
  std::atomic<int> inside = 0;
  std::vector<int> order;  // without a lock: jobs of one key must not overlap
  run_coro(
      [&]() -> Task<> {
        TaskGroup tasks(co_await asio::this_coro::executor);
        for (int i = 0; i < 100; ++i) {
          tasks.spawn("asks", [&, i]() -> Task<> {
            CO_ASSERT_OK(co_await pool.run("key", kNever, [&, i](const std::stop_token&) {
              EXPECT_EQ(++inside, 1);
              order.push_back(i);
              --inside;
            }));
          });
        }
        co_await tasks.join();
      },
      seconds(30));
  EXPECT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(WorkerPoolKeys, KeysRunBesideEachOther) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 2}, metrics);
  run_coro([&]() -> Task<> {
    TaskGroup tasks(co_await asio::this_coro::executor);
    const auto both = std::make_shared<std::latch>(2);
    for (const std::string key : {"a", "b"}) {
      tasks.spawn("meets", [&pool, both, key]() -> Task<> {
        (void)co_await pool.run(key, kNever,
                                [both](const std::stop_token&) { both->arrive_and_wait(); });
      });
    }
    co_await tasks.join();
  });
}

TEST(WorkerPoolKeys, KeysTakeTurns) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 1}, metrics);
  Journal journal;
  run_coro([&]() -> Task<> {
    TaskGroup tasks(co_await asio::this_coro::executor);
    Block block;
    tasks.spawn("blocks", [&]() -> Task<> { (void)co_await pool.run(kNever, block.job()); });
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return block.begun.load(); }, "the start of the job"));
    const auto ask = [&](std::string key, std::string line) {
      tasks.spawn("asks", [&, key, line]() -> Task<> {
        (void)co_await pool.run(key, kNever, journal.job(line));
      });
    };
    for (const std::string line : {"a1", "a2", "a3"}) ask("a", line);
    ask("b", "b1");
    ask("", "c1");
    ask("b", "b2");
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return metrics.expose().contains(R"(queued_jobs{pool="test"} 6)"); },
        "6 queued jobs"));
    block.open.count_down();
    co_await tasks.join();
  });
  EXPECT_THAT(journal.lines(), ElementsAre("a1", "b1", "c1", "a2", "b2", "a3"));
}

TEST(WorkerPoolKeys, AKeyHasABoundOfItsOwn) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 2, .max_queued = 3, .max_per_key = 1}, metrics);
  Journal journal;
  run_coro([&]() -> Task<> {
    TaskGroup tasks(co_await asio::this_coro::executor);
    Block block;
    tasks.spawn("blocks", [&]() -> Task<> { (void)co_await pool.run("a", kNever, block.job()); });
    tasks.spawn("waits", [&]() -> Task<> {
      CO_ASSERT_OK(co_await pool.run("a", kNever, journal.job("a2")));
    });
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return metrics.expose().contains(R"(queued_jobs{pool="test"} 1)"); },
        "one queued job"));
    const auto refused = co_await pool.run("a", kNever, journal.job("a3"));
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().code, ErrorCode::too_many_requests);
    CO_ASSERT_OK(co_await pool.run("b", kNever, journal.job("b1")));
    block.open.count_down();
    co_await tasks.join();
  });
  EXPECT_THAT(journal.lines(), ElementsAre("b1", "a2"));
}

// A waiter that leaves a job which ignores its stop token does not start the next job of the key.
TEST(WorkerPoolKeys, AnAbandonedJobKeepsItsKeyUntilItEnds) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 2}, metrics);
  Journal journal;
  run_coro([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Block block;
    TaskGroup leaves(executor);
    leaves.spawn("leaves", [&]() -> Task<> { (void)co_await pool.run("a", kNever, block.job()); });
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return block.begun.load(); }, "the start of the job"));
    leaves.cancel();
    co_await leaves.join();
    TaskGroup tasks(executor);
    tasks.spawn("waits", [&]() -> Task<> {
      CO_ASSERT_OK(co_await pool.run("a", kNever, journal.job("second")));
    });
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return metrics.expose().contains(R"(queued_jobs{pool="test"} 1)"); },
        "one queued job"));
    CO_ASSERT_OK(co_await pool.run("b", kNever, journal.job("other")));
    EXPECT_THAT(journal.lines(), ElementsAre("other"));
    block.open.count_down();
    co_await tasks.join();
    EXPECT_THAT(journal.lines(), ElementsAre("other", "second"));
  });
}

TEST(WorkerPoolKeys, AWaiterThatLeavesGivesUpItsPlace) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 1, .max_queued = 2, .max_per_key = 1}, metrics);
  Journal journal;
  run_coro([&]() -> Task<> {
    TaskGroup tasks(co_await asio::this_coro::executor);
    Block block;
    tasks.spawn("blocks", [&]() -> Task<> { (void)co_await pool.run("a", kNever, block.job()); });
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return block.begun.load(); }, "the start of the job"));
    for (const std::string key : {"a", "a", "b", "b"}) {
      const auto late =
          co_await pool.run(key, deadline_after(milliseconds(2)), journal.job("never"));
      EXPECT_EQ(late.error().code, ErrorCode::timeout);
    }
    tasks.spawn("waits", [&]() -> Task<> {
      CO_ASSERT_OK(co_await pool.run("a", kNever, journal.job("a")));
    });
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return metrics.expose().contains(R"(queued_jobs{pool="test"} 1)"); },
        "one queued job"));
    block.open.count_down();
    co_await tasks.join();
  });
  EXPECT_THAT(journal.lines(), ElementsAre("a"));
}

}  // namespace
}  // namespace gitops
