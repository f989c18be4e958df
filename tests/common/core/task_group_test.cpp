#include "common/core/task_group.hpp"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/race.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"

namespace gitops {
namespace {

using std::chrono::milliseconds;
using test::LogCapture;
using test::run_coro;

TEST(TaskGroup, JoinWaitsForEveryChildAndForThoseTheyStart) {
  run_coro([]() -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor);
    std::vector<std::string> ended;
    group.spawn("first", [&]() -> Task<> {
      co_await sleep_for(milliseconds(1));
      group.spawn("second", [&]() -> Task<> {
        co_await sleep_for(milliseconds(1));
        ended.emplace_back("second");
      });
      ended.emplace_back("first");
    });
    EXPECT_EQ(group.size(), 1U);
    co_await group.join();
    EXPECT_EQ(group.size(), 0U);
    EXPECT_THAT(ended, testing::ElementsAre("first", "second"));
  });
}

TEST(TaskGroup, JoinOfAnEmptyGroupReturnsAtOnce) {
  run_coro([]() -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor);
    co_await group.join();
  });
}

TEST(TaskGroup, DoesNotRunAChildInsideSpawn) {
  run_coro([]() -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor);
    bool ran = false;
    group.spawn("child", [&]() -> Task<> {
      ran = true;
      co_return;
    });
    EXPECT_FALSE(ran);
    co_await group.join();
    EXPECT_TRUE(ran);
  });
}

TEST(TaskGroup, KeepsWhatATaskCaptured) {
  run_coro([]() -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor);
    std::string seen;
    {
      const std::string text = "long enough to live on the heap of the process";
      group.spawn("child", [&seen, text]() -> Task<> {
        co_await sleep_for(milliseconds(1));
        seen = text;
      });
    }
    co_await group.join();
    EXPECT_EQ(seen, "long enough to live on the heap of the process");
  });
}

TEST(TaskGroup, CancelEndsTheCurrentAndEveryLaterAwait) {
  run_coro([]() -> Task<> {
    const LogCapture captured;
    bool failed = false;
    TaskGroup group(co_await asio::this_coro::executor,
                    [&](const std::string&, const std::string&) { failed = true; });
    int aborted = 0;
    group.spawn("stubborn", [&]() -> Task<> {
      for (int i = 0; i < 3; ++i) {
        try {
          co_await sleep_until(kNever);
        } catch (const boost::system::system_error&) {
          ++aborted;
        }
      }
      co_await sleep_until(kNever);
    });
    co_await sleep_for(milliseconds(1));
    group.cancel();
    co_await group.join();
    EXPECT_EQ(aborted, 3);
    EXPECT_FALSE(failed);
    EXPECT_TRUE(captured.lines().empty()) << captured.text();
  });
}

TEST(TaskGroup, CancelReachesChildrenThatDidNotRunYet) {
  run_coro([]() -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor);
    bool slept = false;
    group.spawn("late", [&]() -> Task<> {
      co_await sleep_until(kNever);
      slept = true;
    });
    group.cancel();
    co_await group.join();
    EXPECT_FALSE(slept);
  });
}

TEST(TaskGroup, CancelReachesDeepIntoAChild) {
  run_coro([]() -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor);
    group.spawn("deep", []() -> Task<> {
      const auto inner = []() -> Task<Result<int>> {
        co_await sleep_until(kNever);
        co_return 1;
      };
      const auto middle = [&inner]() -> Task<Result<int>> {
        co_return co_await with_timeout(kNever, inner());
      };
      (void)co_await with_timeout(kNever, middle());
    });
    co_await sleep_for(milliseconds(1));
    group.cancel();
    co_await group.join();
  });
}

TEST(TaskGroup, ACancelledGroupStartsNothing) {
  run_coro([]() -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor);
    group.cancel();
    group.spawn("never", []() -> Task<> {
      ADD_FAILURE() << "must not run";
      co_return;
    });
    EXPECT_EQ(group.size(), 0U);
    co_await group.join();
  });
}

TEST(TaskGroup, AChildMayCancelItsGroup) {
  run_coro([]() -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor);
    group.spawn("waits", []() -> Task<> { co_await sleep_until(kNever); });
    group.spawn("cancels", [&]() -> Task<> {
      group.cancel();
      co_return;
    });
    co_await group.join();
  });
}

TEST(TaskGroup, LogsAFailureAndTellsOnce) {
  run_coro([]() -> Task<> {
    const LogCapture captured;
    std::vector<std::string> told;
    TaskGroup group(co_await asio::this_coro::executor,
                    [&](const std::string& task, const std::string& what) {
                      told.push_back(task + ": " + what);
                    });
    group.spawn("watcher", []() -> Task<> {
      co_await sleep_for(milliseconds(1));
      throw std::runtime_error("lost its way");
    });
    group.spawn("other", []() -> Task<> {
      co_await sleep_for(milliseconds(3));
      throw 42;
    });
    co_await group.join();
    EXPECT_THAT(told, testing::ElementsAre("watcher: lost its way"));
    EXPECT_EQ(captured.count(R"("message":"task failed","task":"watcher","error":"lost its way")"),
              1U);
    EXPECT_EQ(captured.count(R"("task":"other","error":"an exception of an unknown type")"), 1U);
  });
}

TEST(TaskGroup, AnAbortThatNobodyAskedForIsAFailure) {
  run_coro([]() -> Task<> {
    const LogCapture captured;
    std::string told;
    TaskGroup group(co_await asio::this_coro::executor,
                    [&](const std::string& task, const std::string&) { told = task; });
    group.spawn("aborts", []() -> Task<> {
      throw boost::system::system_error(asio::error::operation_aborted);
      co_return;
    });
    co_await group.join();
    EXPECT_EQ(told, "aborts");
  });
}

TEST(TaskGroup, JoinUnderCancellationCancelsAndAwaitsTheChildren) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TaskGroup outer(executor);
    bool child_ended = false;
    bool thrown_after = false;
    outer.spawn("parent", [&]() -> Task<> {
      TaskGroup inner(co_await asio::this_coro::executor);
      inner.spawn("child", [&]() -> Task<> {
        try {
          co_await sleep_until(kNever);
        } catch (const boost::system::system_error&) {
          child_ended = true;
        }
      });
      co_await inner.join();
      EXPECT_TRUE(child_ended);
      try {
        co_await sleep_until(kNever);
      } catch (const boost::system::system_error&) {
        thrown_after = true;
      }
    });
    co_await sleep_for(milliseconds(1));
    outer.cancel();
    co_await outer.join();
    EXPECT_TRUE(child_ended);
    EXPECT_TRUE(thrown_after);
  });
}

TEST(TaskGroup, LogsChildrenThatOutliveIt) {
  const LogCapture captured;
  Loop loop(1);
  {
    TaskGroup group(loop.get_executor());
    group.spawn("forgotten", []() -> Task<> { co_await sleep_until(kNever); });
    loop.poll();
  }
  EXPECT_EQ(captured.count(R"("task outlives its group","task":"forgotten")"), 1U);
}

}  // namespace
}  // namespace gitops
