#pragma once

#include <functional>

#include <gtest/gtest.h>

#include "common/core/async.hpp"

namespace gitops::test {

// Runs `body` as a coroutine on a fresh loop; `co_await asio::this_coro::executor` gives its
// executor. The test fails when the body throws, when it takes longer than `limit`, or when it
// leaves work on the loop (a task that was not joined, a pending read).
void run_coro(const std::function<Task<>()>& body,
              Clock::duration limit = std::chrono::seconds(30));

// The same in test time: Clock stands still while the loop has work. While the loop is idle it
// advances to the next timer, so a wait of a minute takes milliseconds and no deadline passes
// because the machine is busy. Timers, deadlines and wall_now() follow it. Use it for tests whose
// peers run on the same loop (doubles, scripted servers) or on a WorkerPool that works for it.
// Tests with other processes need run_coro(), because those run in real time. `limit` is the CPU
// time that the test may use.
void run_in_test_time(const std::function<Task<>()>& body,
                      std::chrono::steady_clock::duration limit = std::chrono::seconds(30));

// Whether a run_in_test_time() is running.
bool test_time_runs();

}  // namespace gitops::test

// As ASSERT_*, for coroutines: these co_return. They accept streamed text.
#define CO_ASSERT_TRUE(condition)                             \
  GTEST_AMBIGUOUS_ELSE_BLOCKER_                               \
  if (static_cast<bool>(condition))                           \
    ;                                                         \
  else                                                        \
    co_return GTEST_MESSAGE_("Expected to hold: " #condition, \
                             ::testing::TestPartResult::kFatalFailure)

#define CO_ASSERT_EQ(left, right)                                             \
  GTEST_AMBIGUOUS_ELSE_BLOCKER_                                               \
  if (const ::testing::AssertionResult co_assert_outcome =                    \
          ::testing::internal::EqHelper::Compare(#left, #right, left, right)) \
    ;                                                                         \
  else                                                                        \
    co_return GTEST_MESSAGE_(co_assert_outcome.failure_message(),             \
                             ::testing::TestPartResult::kFatalFailure)

// For a Result: prints its error.
#define CO_ASSERT_OK(result)                                                              \
  GTEST_AMBIGUOUS_ELSE_BLOCKER_                                                           \
  if ((result).has_value())                                                               \
    ;                                                                                     \
  else                                                                                    \
    co_return GTEST_MESSAGE_(::gitops::test::describe(#result, (result).error()).c_str(), \
                             ::testing::TestPartResult::kFatalFailure)

namespace gitops::test {

std::string describe(std::string_view expression, const Error& error);

}  // namespace gitops::test
