#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <semaphore>
#include <stdexcept>
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
using std::chrono::minutes;
using std::chrono::seconds;
using test::run_coro;

// A job that must not run.
struct Forbidden {
  int operator()(const std::stop_token&) const {
    ADD_FAILURE() << "the job runs";
    return 0;
  }
};

// Keeps threads of a pool busy until it is opened.
class Gate {
 public:
  // A job that ignores its stop token.
  auto job() {
    return [state = state_](const std::stop_token&) {
      ++state->inside;
      state->open.wait();
      --state->inside;
      return 1;
    };
  }
  [[nodiscard]] int inside() const { return state_->inside; }
  void open() {
    if (!std::exchange(opened_, true)) state_->open.count_down();
  }
  Gate() = default;
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

 private:
  struct State {
    std::atomic<int> inside = 0;
    std::latch open{1};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  bool opened_ = false;
};

TEST(WorkerPool, RunsOnAThreadOfItsOwnAndResumesOnTheLoop) {
  Metrics metrics;
  WorkerPool pool({.name = "test"}, metrics);
  run_coro([&pool]() -> Task<> {
    const auto loop_thread = std::this_thread::get_id();
    const auto worker = co_await pool.run(
        kNever, [](const std::stop_token&) { return std::this_thread::get_id(); });
    CO_ASSERT_OK(worker);
    EXPECT_NE(*worker, loop_thread);
    EXPECT_EQ(std::this_thread::get_id(), loop_thread);
  });
}

TEST(WorkerPool, BringsValuesResultsAndPlainCallsBack) {
  Metrics metrics;
  WorkerPool pool({.name = "test"}, metrics);
  run_coro([&pool]() -> Task<> {
    auto text = std::make_unique<std::string>("borrowed");
    const auto moved = co_await pool.run(
        kNever,
        [owned = std::move(text)](const std::stop_token&) mutable { return std::move(owned); });
    CO_ASSERT_OK(moved);
    EXPECT_EQ(**moved, "borrowed");
    const auto calls = std::make_shared<int>(0);
    const Result<void> called =
        co_await pool.run(kNever, [calls](const std::stop_token&) { ++*calls; });
    CO_ASSERT_OK(called);
    EXPECT_EQ(*calls, 1);
    const Result<int> refused =
        co_await pool.run(kNever, [](const std::stop_token&) -> Result<int> {
          return fail(ErrorCode::not_found, "nothing here");
        });
    EXPECT_EQ(refused.error().code, ErrorCode::not_found);
  });
}

TEST(WorkerPool, BringsExceptionsBack) {
  Metrics metrics;
  WorkerPool pool({.name = "test"}, metrics);
  run_coro([&pool]() -> Task<> {
    std::string what;
    try {
      (void)co_await pool.run(
          kNever, [](const std::stop_token&) { throw std::runtime_error("on the pool"); });
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_EQ(what, "on the pool");
  });
}

TEST(WorkerPool, RefusesAtOnceWhenItIsFull) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 1, .max_queued = 2}, metrics);
  run_coro([&]() -> Task<> {
    TaskGroup tasks(co_await asio::this_coro::executor);
    Gate gate;
    int ended = 0;
    for (int i = 0; i < 3; ++i) {
      tasks.spawn("blocks", [&]() -> Task<> {
        CO_ASSERT_OK(co_await pool.run(kNever, gate.job()));
        ++ended;
      });
    }
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return gate.inside() == 1; }, "a job inside the gate"));
    EXPECT_THAT(metrics.expose(),
                testing::HasSubstr(R"(gitops_worker_pool_queued_jobs{pool="test"} 2)"));
    EXPECT_THAT(metrics.expose(),
                testing::HasSubstr(R"(gitops_worker_pool_busy_threads{pool="test"} 1)"));
    const auto refused = co_await pool.run(kNever, Forbidden{});
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().code, ErrorCode::too_many_requests);
    EXPECT_THAT(metrics.expose(),
                testing::HasSubstr(R"(gitops_worker_pool_rejected_jobs_total{pool="test"} 1)"));
    gate.open();
    co_await tasks.join();
    EXPECT_EQ(ended, 3);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return metrics.expose().contains(R"(busy_threads{pool="test"} 0)"); },
        "no busy thread"));
  });
}

TEST(WorkerPool, NeedsNoQueueWhileAThreadIsFree) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 2, .max_queued = 0}, metrics);
  run_coro([&]() -> Task<> {
    TaskGroup tasks(co_await asio::this_coro::executor);
    Gate gate;
    int ended = 0;
    for (int i = 0; i < 2; ++i) {
      tasks.spawn("blocks", [&]() -> Task<> {
        CO_ASSERT_OK(co_await pool.run(kNever, gate.job()));
        ++ended;
      });
    }
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return gate.inside() == 2; }, "two jobs inside the gate"));
    const auto refused = co_await pool.run(kNever, Forbidden{});
    EXPECT_EQ(refused.error().code, ErrorCode::too_many_requests);
    gate.open();
    co_await tasks.join();
    EXPECT_EQ(ended, 2);
  });
}

TEST(WorkerPool, WaitersLeaveAtTheirDeadline) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 1}, metrics);
  run_coro([&]() -> Task<> {
    Gate gate;
    const auto late = co_await pool.run(deadline_after(milliseconds(5)), gate.job());
    CO_ASSERT_TRUE(!late);
    EXPECT_EQ(late.error().code, ErrorCode::timeout);
    gate.open();
    CO_ASSERT_OK(co_await pool.run(kNever, [](const std::stop_token&) { return 1; }));
  });
}

TEST(WorkerPool, ARunningJobSeesThatItsWaiterLeft) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 1}, metrics);
  run_coro([&]() -> Task<> {
    const auto begun = std::make_shared<std::atomic<bool>>(false);
    const auto saw = std::make_shared<std::atomic<bool>>(false);
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("waits", [&]() -> Task<> {
      (void)co_await pool.run(kNever, [begun, saw](const std::stop_token& stop) {
        *begun = true;
        while (!stop.stop_requested()) std::this_thread::yield();
        *saw = true;
      });
    });
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return begun->load(); }, "the start of the job"));
    tasks.cancel();
    co_await tasks.join();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return saw->load(); }, "the request to stop"));
  });
}

TEST(WorkerPool, AJobThatHasNotBegunNeverRunsAndLeavesTheQueue) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 1, .max_queued = 1}, metrics);
  run_coro([&]() -> Task<> {
    TaskGroup tasks(co_await asio::this_coro::executor);
    Gate gate;
    tasks.spawn("blocks", [&]() -> Task<> { (void)co_await pool.run(kNever, gate.job()); });
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return gate.inside() == 1; }, "a job inside the gate"));
    for (int i = 0; i < 3; ++i) {
      const auto owned = std::make_shared<int>(1);
      const auto late =
          co_await pool.run(deadline_after(milliseconds(2)),
                            [owned, forbidden = Forbidden{}](const std::stop_token& stop) {
                              return forbidden(stop);
                            });
      // Not too_many_requests: the job before has left the queue.
      EXPECT_EQ(late.error().code, ErrorCode::timeout);
      EXPECT_EQ(owned.use_count(), 1);
    }
    EXPECT_THAT(metrics.expose(), testing::HasSubstr(R"(queued_jobs{pool="test"} 0)"));
    gate.open();
    co_await tasks.join();
  });
}

TEST(WorkerPool, DoesNotBeginWhatIsTooLateAlready) {
  Metrics metrics;
  WorkerPool pool({.name = "test"}, metrics);
  run_coro([&]() -> Task<> {
    const auto late = co_await pool.run(Clock::now(), Forbidden{});
    EXPECT_EQ(late.error().code, ErrorCode::timeout);
  });
}

TEST(WorkerPool, ACancelledWaiterLeaves) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 1}, metrics);
  run_coro([&]() -> Task<> {
    Gate gate;
    TaskGroup tasks(co_await asio::this_coro::executor);
    int aborted = 0;
    for (int i = 0; i < 2; ++i) {  // one runs, one waits in the queue
      tasks.spawn("waits", [&]() -> Task<> {
        try {
          (void)co_await pool.run(kNever, gate.job());
        } catch (const boost::system::system_error& error) {
          aborted += error.code() == asio::error::operation_aborted ? 1 : 0;
          throw;
        }
      });
    }
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return gate.inside() == 1; }, "a job inside the gate"));
    tasks.cancel();
    co_await tasks.join();
    EXPECT_EQ(aborted, 2);
    EXPECT_EQ(gate.inside(), 1);
    EXPECT_THAT(metrics.expose(), testing::HasSubstr(R"(queued_jobs{pool="test"} 0)"));
  });
}

// For the sanitizers: the loop and everything on it is destroyed when the job ends.
TEST(WorkerPool, AJobOutlivesTheLoopOfItsWaiter) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 1}, metrics);
  for (int i = 0; i < 50; ++i) {
    Gate gate;
    {
      Loop loop(1);
      asio::co_spawn(
          loop.get_executor(), [&]() -> Task<> { (void)co_await pool.run(kNever, gate.job()); },
          [](const std::exception_ptr&) {});
      while (gate.inside() == 0) loop.poll();
      if (i % 2 == 0) gate.open();
    }
    gate.open();
    while (gate.inside() > 0) std::this_thread::yield();
  }
}

TEST(WorkerPool, ServesSeveralLoops) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 3, .max_queued = 1'000}, metrics);
  const auto add_up = [&pool] {
    run_coro(
        [&pool]() -> Task<> {
          TaskGroup tasks(co_await asio::this_coro::executor);
          const auto own_thread = std::this_thread::get_id();
          int sum = 0;
          for (int i = 1; i <= 200; ++i) {
            tasks.spawn("adds", [&pool, &sum, own_thread, i]() -> Task<> {
              const auto value =
                  co_await pool.run(kNever, [i](const std::stop_token&) { return i; });
              EXPECT_EQ(std::this_thread::get_id(), own_thread);
              sum += *value;
            });
          }
          co_await tasks.join();
          EXPECT_EQ(sum, 200 * 201 / 2);
        },
        seconds(30));
  };
  const std::jthread one(add_up);
  const std::jthread two(add_up);
  add_up();
}

// Deadlines that pass while jobs start and end.
TEST(WorkerPool, DeadlinesRaceWithJobs) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 2, .max_queued = 1'000}, metrics);
  run_coro(
      [&pool]() -> Task<> {
        TaskGroup tasks(co_await asio::this_coro::executor);
        int answers = 0;
        for (int i = 0; i < 300; ++i) {
          tasks.spawn("asks", [&, i]() -> Task<> {
            const auto result =
                co_await pool.run(deadline_after(std::chrono::microseconds(10 * i)),
                                  [i](const std::stop_token&) { return std::to_string(i); });
            if (result) {
              EXPECT_EQ(*result, std::to_string(i));
            } else {
              EXPECT_EQ(result.error().code, ErrorCode::timeout);
            }
            ++answers;
          });
        }
        co_await tasks.join();
        EXPECT_EQ(answers, 300);
      },
      seconds(30));
}

TEST(WorkerPool, StopAnswersThoseInTheQueueAndAsksTheRunningToStop) {
  Metrics metrics;
  WorkerPool pool({.name = "test", .threads = 1}, metrics);
  run_coro([&]() -> Task<> {
    TaskGroup tasks(co_await asio::this_coro::executor);
    const auto begun = std::make_shared<std::atomic<bool>>(false);
    Result<int> running;
    Result<int> queued;
    tasks.spawn("runs", [&]() -> Task<> {
      running = co_await pool.run(kNever, [begun](const std::stop_token& stop) {
        *begun = true;
        while (!stop.stop_requested()) std::this_thread::yield();
        return 5;
      });
    });
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return begun->load(); }, "the start of the job"));
    tasks.spawn("waits", [&]() -> Task<> { queued = co_await pool.run(kNever, Forbidden{}); });
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return metrics.expose().contains(R"(queued_jobs{pool="test"} 1)"); },
        "one queued job"));
    EXPECT_EQ(pool.stop(minutes(1)), 0U);
    co_await tasks.join();
    EXPECT_EQ(*running, 5);
    EXPECT_EQ(queued.error().code, ErrorCode::unavailable);
    const auto late = co_await pool.run(kNever, Forbidden{});
    EXPECT_EQ(late.error().code, ErrorCode::unavailable);
  });
}

TEST(WorkerPool, StopLeavesJobsBehindThatDoNotEnd) {
  std::vector<std::unique_ptr<Gate>> gates;
  {
    Metrics metrics;
    WorkerPool pool({.name = "test", .threads = 3}, metrics);
    run_coro([&]() -> Task<> {
      TaskGroup tasks(co_await asio::this_coro::executor);
      for (int i = 0; i < 2; ++i) {
        auto& gate = *gates.emplace_back(std::make_unique<Gate>());
        tasks.spawn("blocks", [&]() -> Task<> { (void)co_await pool.run(kNever, gate.job()); });
      }
      CO_ASSERT_TRUE(co_await test::eventually(
          [&] { return std::ranges::all_of(gates, [](auto& g) { return g->inside() == 1; }); },
          "a job inside each gate"));
      EXPECT_EQ(pool.stop(milliseconds(5)), 2U);
      EXPECT_EQ(WorkerPool::left_behind(), 2U);
      tasks.cancel();
      co_await tasks.join();
    });
  }
  // The pool, its metrics and the loop are destroyed.
  gates.clear();
  while (WorkerPool::left_behind() > 0) std::this_thread::yield();
}

}  // namespace
}  // namespace gitops
