#include "common/core/async.hpp"

#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "common/core/race.hpp"
#include "common/core/task_group.hpp"
#include "support/run_coro.hpp"
#include "support/run_on.hpp"
#include "support/wait.hpp"

namespace gitops {
namespace {

using std::chrono::milliseconds;
using test::run_coro;
using test::run_in_test_time;

bool is_aborted(const boost::system::system_error& error) {
  return error.code() == asio::error::operation_aborted;
}

Task<Result<int>> answer(int value) {
  co_return value;
}

Task<Result<int>> refuse() {
  co_return fail(ErrorCode::conflict, "no");
}

// Ends only by cancellation, which it records.
Task<Result<int>> hang(bool& cancelled) {
  try {
    co_await sleep_until(kNever);
  } catch (const boost::system::system_error& error) {
    cancelled = is_aborted(error);
    throw;
  }
  co_return 0;
}

TEST(WithTimeout, PassesTheResultOn) {
  run_coro([]() -> Task<> {
    const auto value = co_await with_timeout(deadline_after(std::chrono::minutes(1)), answer(7));
    CO_ASSERT_OK(value);
    EXPECT_EQ(*value, 7);
    const auto error = co_await with_timeout(kNever, refuse());
    EXPECT_EQ(error.error().code, ErrorCode::conflict);
  });
}

TEST(WithTimeout, CancelsAndAwaitsWorkThatIsTooSlow) {
  run_coro([]() -> Task<> {
    bool cancelled = false;
    const auto result = co_await with_timeout(deadline_after(milliseconds(5)), hang(cancelled));
    EXPECT_TRUE(cancelled);
    CO_ASSERT_TRUE(!result);
    EXPECT_EQ(result.error().code, ErrorCode::timeout);
  });
}

TEST(WithTimeout, RunsOutAtOnceWhenTheDeadlineHasPassed) {
  run_coro([]() -> Task<> {
    bool cancelled = false;
    const auto result =
        co_await with_timeout(Clock::now() - std::chrono::seconds(1), hang(cancelled));
    CO_ASSERT_TRUE(!result);
    EXPECT_EQ(result.error().code, ErrorCode::timeout);
  });
}

TEST(WithTimeout, RethrowsWhatTheWorkThrowsWithoutWaitingForTheDeadline) {
  run_coro([]() -> Task<> {
    const auto work = []() -> Task<Result<int>> {
      co_await sleep_for(milliseconds(1));
      throw std::runtime_error("broken");
    };
    const auto start = Clock::now();
    std::string what;
    try {
      (void)co_await with_timeout(deadline_after(std::chrono::hours(1)), work());
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_EQ(what, "broken");
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(25));
  });
}

TEST(WithTimeout, LetsCancellationFromOutsideThrough) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TaskGroup group(executor);
    bool cancelled = false;
    bool thrown = false;
    Event started(executor);
    group.spawn("waits", [&]() -> Task<> {
      started.notify_all();
      try {
        (void)co_await with_timeout(deadline_after(std::chrono::hours(1)), hang(cancelled));
      } catch (const boost::system::system_error& error) {
        thrown = is_aborted(error);
        throw;
      }
    });
    co_await started.wait();
    group.cancel();
    co_await group.join();
    EXPECT_TRUE(cancelled);
    EXPECT_TRUE(thrown);
  });
}

TEST(WithTimeout, NestsAndTheShorterDeadlineWins) {
  run_coro([]() -> Task<> {
    bool cancelled = false;
    const auto inner = [&cancelled]() -> Task<Result<int>> {
      return with_timeout(deadline_after(std::chrono::hours(1)), hang(cancelled));
    };
    const auto result = co_await with_timeout(deadline_after(milliseconds(5)), inner());
    CO_ASSERT_TRUE(!result);
    EXPECT_EQ(result.error().code, ErrorCode::timeout);
    EXPECT_TRUE(cancelled);
  });
}

TEST(WithTimeout, WorkMayCancelItsOwnGroupWithoutWaiting) {
  run_coro([]() -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor);
    bool aborted = false;
    group.spawn("cancels itself", [&]() -> Task<> {
      const auto work = [&group]() -> Task<Result<int>> {
        group.cancel();
        co_return 1;
      };
      (void)co_await with_timeout(kNever, work());
      try {
        co_await sleep_until(kNever);
      } catch (const boost::system::system_error& error) {
        aborted = is_aborted(error);
      }
    });
    co_await group.join();
    EXPECT_TRUE(aborted);
  });
}

TEST(Event, WaitTellsNotificationFromDeadline) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Event event(executor);
    EXPECT_FALSE(co_await event.wait(deadline_after(milliseconds(2))));
    TaskGroup group(executor);
    group.spawn("notifies", [&event]() -> Task<> {
      co_await sleep_for(milliseconds(1));
      event.notify_all();
    });
    EXPECT_TRUE(co_await event.wait());
    co_await group.join();
  });
}

TEST(Event, ResumesEveryWaiterAndKeepsTheirDeadlinesApart) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Event event(executor);
    TaskGroup group(executor);
    int notified = 0;
    int expired = 0;
    for (const Deadline deadline :
         {kNever, deadline_after(milliseconds(2)), kNever, deadline_after(std::chrono::hours(1))}) {
      group.spawn("waits", [&, deadline]() -> Task<> {
        ++(co_await event.wait(deadline) ? notified : expired);
      });
    }
    EXPECT_TRUE(co_await test::eventually([&] { return expired > 0; }, "an expired wait"));
    EXPECT_EQ(notified, 0);
    event.notify_all();
    co_await group.join();
    EXPECT_EQ(notified, 3);
    EXPECT_EQ(expired, 1);
  });
}

TEST(Event, WaitThrowsWhenTheWaiterIsCancelled) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Event event(executor);
    Event started(executor);
    TaskGroup group(executor);
    bool thrown = false;
    bool returned = false;
    group.spawn("waits", [&]() -> Task<> {
      started.notify_all();
      try {
        co_await event.wait();
        returned = true;
      } catch (const boost::system::system_error& error) {
        thrown = is_aborted(error);
      }
    });
    co_await started.wait();
    group.cancel();
    co_await group.join();
    EXPECT_TRUE(thrown);
    EXPECT_FALSE(returned);
  });
}

TEST(Event, MayEndBeforeItsWaiters) {
  std::optional<Event> event;
  {
    Loop loop(1);
    event.emplace(loop.get_executor());
    const auto waits = [&event]() -> Task<> { co_await event->wait(); };
    asio::co_spawn(loop.get_executor(), waits, [](const std::exception_ptr&) {});
    loop.poll();
    event.reset();
  }
}

TEST(SleepUntil, ReturnsNotBeforeItsTime) {
  run_coro([]() -> Task<> {
    const auto when = deadline_after(milliseconds(3));
    co_await sleep_until(when);
    EXPECT_GE(Clock::now(), when);
  });
}

TEST(TestTime, AnHourPassesInAMoment) {
  run_in_test_time([]() -> Task<> {
    const auto before = Clock::now();
    const auto wall = wall_now();
    co_await sleep_for(std::chrono::hours(1));
    EXPECT_GE(Clock::now() - before, std::chrono::hours(1));
    EXPECT_LE(Clock::now() - before, std::chrono::minutes(66));
    EXPECT_GE(wall_now() - wall, std::chrono::hours(1));
    EXPECT_LE(wall_now() - wall, std::chrono::minutes(66));
  });
  EXPECT_LE(Clock::now() - std::chrono::steady_clock::now(), milliseconds(1)) << "runs again";
}

TEST(TestTime, TimersOfMillisecondsComeInTheirMillisecond) {
  run_in_test_time([]() -> Task<> {
    for (int i = 1; i < 10; ++i) {
      const auto before = Clock::now();
      co_await sleep_for(milliseconds(i));
      EXPECT_EQ(Clock::now() - before, milliseconds(i));
    }
  });
}

TEST(TestTime, NoTimePassesWhileThereIsSomethingToDo) {
  run_in_test_time([]() -> Task<> {
    const auto before = Clock::now();
    for (int i = 0; i < 1000; ++i) {
      co_await asio::post(co_await asio::this_coro::executor, use_task);
    }
    asio::thread_pool pool(1);
    co_await test::run_on(pool, [] { std::this_thread::sleep_for(milliseconds(30)); });
    EXPECT_EQ(Clock::now(), before);
  });
}

}  // namespace
}  // namespace gitops
