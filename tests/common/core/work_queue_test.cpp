#include "common/core/work_queue.hpp"

#include <exception>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops {
namespace {

using std::chrono::milliseconds;
using test::run_coro;
using test::run_in_test_time;

constexpr auto kLong = std::chrono::hours(1);

// Returns nullopt when the queue was stopped.
Task<std::optional<std::string>> next(WorkQueue& queue) {
  while (co_await queue.wait()) {
    if (auto key = queue.take()) co_return key;
  }
  co_return std::nullopt;
}

// Takes everything that is ready now; marks each as done.
Task<std::vector<std::string>> take_all(WorkQueue& queue) {
  std::vector<std::string> keys;
  while (queue.size() > 0) {
    const auto key = co_await next(queue);
    if (!key) break;
    keys.push_back(*key);
    queue.done(*key);
  }
  co_return keys;
}

TEST(WorkQueue, HandsKeysOverInTheOrderOfTheirFirstAdd) {
  run_coro([]() -> Task<> {
    WorkQueue queue(co_await asio::this_coro::executor, 10);
    for (const auto* key : {"b", "a", "c", "a", "b"}) EXPECT_TRUE(queue.add(key));
    EXPECT_EQ(queue.size(), 3U);
    EXPECT_THAT(co_await take_all(queue), testing::ElementsAre("b", "a", "c"));
  });
}

TEST(WorkQueue, RefusesAFurtherKeyWhenFullButNotAKnownOne) {
  run_coro([]() -> Task<> {
    WorkQueue queue(co_await asio::this_coro::executor, 2);
    EXPECT_EQ(queue.capacity(), 2U);
    EXPECT_TRUE(queue.add("a"));
    EXPECT_TRUE(queue.add("b"));
    EXPECT_FALSE(queue.add("c"));
    EXPECT_TRUE(queue.add("a"));
    EXPECT_EQ(co_await next(queue), "a");
    EXPECT_TRUE(queue.add("c"));
    EXPECT_FALSE(queue.add("d"));
    EXPECT_TRUE(queue.add("a"));  // is in work: comes back later, beyond the capacity
    queue.done("a");
    EXPECT_EQ(queue.size(), 3U);
    EXPECT_THAT(co_await take_all(queue), testing::ElementsAre("b", "c", "a"));
  });
}

TEST(WorkQueue, KeysOfABatchGetReadyTogether) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    WorkQueue queue(executor, 10, {}, milliseconds(25));
    TaskGroup tasks(executor);
    const auto begin = Clock::now();
    std::vector<std::string> taken;
    tasks.spawn("worker", [&]() -> Task<> {
      while (auto key = co_await next(queue)) {
        EXPECT_GE(Clock::now(), begin + milliseconds(25));
        taken.push_back(*key);
      }
    });
    EXPECT_TRUE(queue.add("a"));
    EXPECT_EQ(queue.take(), std::nullopt);
    co_await sleep_for(milliseconds(10));
    EXPECT_TRUE(queue.add("b"));
    EXPECT_TRUE(queue.add("a"));
    EXPECT_TRUE(queue.contains("b"));
    EXPECT_EQ(queue.size(), 2U);
    EXPECT_TRUE(co_await test::eventually([&] { return taken.size() == 2; }, "both keys"));
    EXPECT_LT(Clock::now(), begin + milliseconds(35)) << "the second has no period of its own";
    EXPECT_THAT(taken, testing::ElementsAre("a", "b"));
    queue.done("a");
    queue.done("b");
    queue.stop();
    co_await tasks.join();
  });
}

TEST(WorkQueue, ABatchCountsForTheCapacityAndHoldsNoReturningKeyUp) {
  run_in_test_time([]() -> Task<> {
    WorkQueue queue(co_await asio::this_coro::executor, 2, {}, milliseconds(25));
    EXPECT_TRUE(queue.add("a"));
    EXPECT_TRUE(queue.add("b"));
    EXPECT_FALSE(queue.add("c"));
    EXPECT_EQ(co_await next(queue), "a");
    const auto now = Clock::now();
    queue.add("a");
    queue.done("a");
    EXPECT_THAT(co_await take_all(queue), testing::ElementsAre("b", "a"));
    EXPECT_EQ(Clock::now(), now);
    EXPECT_TRUE(queue.add("c"));
    queue.stop();
    EXPECT_EQ(queue.size(), 0U);
    EXPECT_FALSE(queue.contains("c"));
  });
}

TEST(WorkQueue, AKeyAddedWhileInWorkRunsOnceMoreAfterwards) {
  run_coro([]() -> Task<> {
    WorkQueue queue(co_await asio::this_coro::executor, 10);
    queue.add("a");
    EXPECT_EQ(co_await next(queue), "a");
    EXPECT_EQ(queue.in_work(), 1U);
    EXPECT_TRUE(queue.add("a"));
    EXPECT_TRUE(queue.add("a"));
    EXPECT_EQ(queue.size(), 0U);
    queue.done("a");
    EXPECT_EQ(queue.in_work(), 0U);
    EXPECT_THAT(co_await take_all(queue), testing::ElementsAre("a"));
  });
}

TEST(WorkQueue, TwoWorkersNeverHoldTheSameKey) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    WorkQueue queue(executor, 10);
    TaskGroup workers(executor);
    std::set<std::string> held;
    int runs = 0;
    for (int i = 0; i < 4; ++i) {
      workers.spawn("worker", [&]() -> Task<> {
        while (auto key = co_await next(queue)) {
          EXPECT_TRUE(held.insert(*key).second) << *key;
          co_await asio::post(co_await asio::this_coro::executor, use_task);
          held.erase(*key);
          ++runs;
          queue.done(*key);
        }
      });
    }
    for (int i = 0; i < 300; ++i) {
      queue.add("key-" + std::to_string(i % 3));
      co_await asio::post(executor, use_task);
    }
    while (queue.size() + queue.in_work() > 0) co_await asio::post(executor, use_task);
    queue.stop();
    co_await workers.join();
    EXPECT_GT(runs, 3);
  });
}

TEST(WorkQueue, RetryBringsAKeyBackAfterItsDelay) {
  run_in_test_time([]() -> Task<> {
    WorkQueue queue(co_await asio::this_coro::executor, 10);
    queue.add("a");
    queue.add("b");
    EXPECT_EQ(co_await next(queue), "a");
    const auto earliest = Clock::now() + milliseconds(5);
    queue.retry("a", milliseconds(5));
    EXPECT_EQ(queue.size(), 2U);
    EXPECT_EQ(co_await next(queue), "b");
    EXPECT_EQ(co_await next(queue), "a");
    EXPECT_GE(Clock::now(), earliest);
  });
}

TEST(WorkQueue, DelayedKeysComeInTheOrderOfTheirTime) {
  run_in_test_time([]() -> Task<> {
    WorkQueue queue(co_await asio::this_coro::executor, 10);
    for (const auto* key : {"slow", "quick"}) {
      queue.add(key);
      EXPECT_EQ(co_await next(queue), key);
      queue.retry(key, key == std::string("slow") ? milliseconds(8) : milliseconds(2));
    }
    EXPECT_EQ(co_await next(queue), "quick");
    EXPECT_EQ(co_await next(queue), "slow");
  });
}

TEST(WorkQueue, AddBringsADelayedKeyForward) {
  run_coro([]() -> Task<> {
    WorkQueue queue(co_await asio::this_coro::executor, 1);
    queue.add("a");
    EXPECT_EQ(co_await next(queue), "a");
    queue.retry("a", kLong);
    EXPECT_EQ(queue.size(), 1U);
    EXPECT_TRUE(queue.add("a"));
    EXPECT_EQ(queue.size(), 1U);
    EXPECT_EQ(co_await next(queue), "a");
    queue.done("a");
    EXPECT_EQ(queue.size(), 0U);
  });
}

TEST(WorkQueue, DelayedKeysLeaveTheCapacityToTheOthers) {
  run_coro([]() -> Task<> {
    WorkQueue queue(co_await asio::this_coro::executor, 1);
    for (const auto* key : {"a", "b"}) {
      EXPECT_TRUE(queue.add(key));
      EXPECT_EQ(co_await next(queue), key);
      queue.retry(key, kLong);
    }
    EXPECT_EQ(queue.delayed(), 2U);
    EXPECT_TRUE(queue.add("c"));
    EXPECT_FALSE(queue.add("d"));
    EXPECT_EQ(co_await next(queue), "c");
  });
}

TEST(WorkQueue, DelaysEndEarlyInTheirOrderAndNotAllAtOnce) {
  run_coro([]() -> Task<> {
    WorkQueue queue(co_await asio::this_coro::executor, 10);
    for (const auto& [key, hours] : {std::pair{"c", 3}, std::pair{"a", 1}, std::pair{"b", 2}}) {
      queue.add(key);
      EXPECT_EQ(co_await next(queue), key);
      queue.retry(key, std::chrono::hours(hours));
    }
    EXPECT_EQ(queue.bring_forward(2), 2U);
    EXPECT_EQ(queue.delayed(), 1U);
    EXPECT_EQ(co_await next(queue), "a");
    EXPECT_EQ(co_await next(queue), "b");
    EXPECT_EQ(queue.bring_forward(2), 1U);
    EXPECT_EQ(co_await next(queue), "c");
    EXPECT_EQ(queue.bring_forward(2), 0U);
  });
}

TEST(WorkQueue, ASlowKeyWaitsForAPlaceAndHoldsUpNoOther) {
  run_coro([]() -> Task<> {
    bool has_place = false;
    WorkQueue queue(co_await asio::this_coro::executor, 2,
                    {.is_slow = [](const std::string& key) { return key.starts_with("slow"); },
                     .has_place = [&has_place] { return has_place; }});
    for (const auto* key : {"slow-1", "slow-2", "slow-3", "a", "b"}) EXPECT_TRUE(queue.add(key));
    EXPECT_FALSE(queue.add("c")) << "the normal lane is full";
    EXPECT_EQ(queue.take(), "a");
    has_place = true;
    EXPECT_EQ(queue.take(), "slow-1") << "it came before b";
    has_place = false;
    EXPECT_EQ(queue.take(), "b");
    EXPECT_EQ(queue.take(), std::nullopt);
    EXPECT_EQ(queue.size(), 2U);
  });
}

TEST(WorkQueue, AWorkerThatWaitsGetsASlowKeyWhenAPlaceGetsFree) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    bool has_place = true;
    WorkQueue queue(executor, 2,
                    {.is_slow = [](const std::string&) { return true; },
                     .has_place = [&has_place] { return has_place; }});
    queue.add("first");
    EXPECT_EQ(queue.take(), "first");
    has_place = false;
    queue.add("second");
    TaskGroup workers(executor);
    std::optional<std::string> got;
    workers.spawn("worker", [&]() -> Task<> { got = co_await next(queue); });
    co_await asio::post(executor, use_task);
    EXPECT_EQ(got, std::nullopt);
    has_place = true;
    queue.done("first");
    co_await workers.join();
    EXPECT_EQ(got, "second");
  });
}

TEST(WorkQueue, RetryOfAKeyAddedMeanwhileDoesNotWait) {
  run_coro([]() -> Task<> {
    WorkQueue queue(co_await asio::this_coro::executor, 10);
    queue.add("a");
    EXPECT_EQ(co_await next(queue), "a");
    queue.add("a");
    queue.retry("a", kLong);
    EXPECT_EQ(co_await next(queue), "a");
  });
}

TEST(WorkQueue, AWaitingWorkerIsWokenByAddAndByAnEarlierRetry) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    WorkQueue queue(executor, 10);
    queue.add("late");
    queue.add("early");
    EXPECT_EQ(co_await next(queue), "late");
    EXPECT_EQ(co_await next(queue), "early");
    queue.retry("late", kLong);
    TaskGroup workers(executor);
    std::vector<std::string> seen;
    workers.spawn("worker", [&]() -> Task<> {
      while (auto key = co_await next(queue)) {
        seen.push_back(*key);
        queue.done(*key);
        if (seen.size() == 2) queue.stop();
      }
    });
    co_await asio::post(executor, use_task);
    queue.retry("early", milliseconds(2));
    EXPECT_TRUE(
        co_await test::eventually([&] { return !seen.empty(); }, "the key that is due first"));
    queue.add("new");
    co_await workers.join();
    EXPECT_THAT(seen, testing::ElementsAre("early", "new"));
  });
}

TEST(WorkQueue, AKeyWakesFewOfManyWaitingWorkers) {
  Loop loop(1);
  WorkQueue queue(loop.get_executor(), 10);
  std::vector<std::string> taken;
  std::size_t ended = 0;
  const auto work = [&]() -> Task<> {
    while (co_await queue.wait()) {
      const auto key = queue.take();
      if (!key) continue;
      taken.push_back(*key);
      queue.done(*key);
    }
    ++ended;
  };
  for (int i = 0; i < 100; ++i) asio::co_spawn(loop, work, [](const std::exception_ptr&) {});
  loop.poll();
  for (const std::string key : {"a", "b"}) {
    queue.add(key);
    EXPECT_LE(loop.poll(), 10U) << "handlers for one key";
    EXPECT_EQ(taken.back(), key);
  }
  queue.stop();
  loop.poll();
  EXPECT_EQ(ended, 100U);
}

TEST(WorkQueue, StopEndsEveryNextAndRefusesKeys) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    WorkQueue queue(executor, 10);
    TaskGroup workers(executor);
    int ended = 0;
    for (int i = 0; i < 3; ++i) {
      workers.spawn("worker", [&]() -> Task<> {
        const auto key = co_await next(queue);
        EXPECT_FALSE(key.has_value());
        ++ended;
      });
    }
    co_await asio::post(executor, use_task);
    queue.stop();
    co_await workers.join();
    EXPECT_EQ(ended, 3);
    EXPECT_FALSE(queue.add("a"));
    EXPECT_FALSE((co_await next(queue)).has_value());
  });
}

TEST(WorkQueue, StopForgetsWhatWaitsAndLetsWorkersFinish) {
  run_coro([]() -> Task<> {
    WorkQueue queue(co_await asio::this_coro::executor, 10);
    for (const auto* key : {"a", "b", "c"}) queue.add(key);
    EXPECT_EQ(co_await next(queue), "a");
    EXPECT_EQ(co_await next(queue), "b");
    queue.add("a");
    queue.stop();
    queue.done("a");
    queue.retry("b", milliseconds(1));
    EXPECT_EQ(queue.size(), 0U);
    EXPECT_EQ(queue.in_work(), 0U);
  });
}

TEST(WorkQueue, DoneAndRetryOfAKeyThatNobodyHoldsChangeNothing) {
  run_coro([]() -> Task<> {
    WorkQueue queue(co_await asio::this_coro::executor, 10);
    queue.add("a");
    queue.done("a");
    queue.retry("a", kLong);
    queue.retry("unknown", kLong);
    EXPECT_EQ(queue.size(), 1U);
    EXPECT_EQ(co_await next(queue), "a");
  });
}

TEST(WorkQueue, ACancelledWorkerTakesNothing) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    WorkQueue queue(executor, 10);
    TaskGroup workers(executor);
    workers.spawn("worker", [&]() -> Task<> {
      co_await next(queue);
      ADD_FAILURE() << "must not get a key";
    });
    co_await asio::post(executor, use_task);
    workers.cancel();
    co_await workers.join();
    queue.add("a");
    EXPECT_EQ(queue.size(), 1U);
  });
}

}  // namespace
}  // namespace gitops
