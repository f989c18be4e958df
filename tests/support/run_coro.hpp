#pragma once

#include <functional>

#include <gtest/gtest.h>

#include "common/core/async.hpp"

namespace gitops::test {

// Runs `body` as a coroutine on a fresh loop; `co_await asio::this_coro::executor` gives its
// executor. The test fails when the body throws, when it takes longer than `limit`, and when it
// leaves work on the loop behind (a task that was not joined, a socket that still reads).
void run_coro(const std::function<Task<>()>& body, Clock::duration limit = std::chrono::seconds(5));

// The same in a time of its own: Clock stands still while the loop has something to do and moves on
// when it has nothing, a millisecond and more at a turn, so that a wait of a minute takes a moment,
// and a busy machine makes no deadline pass. Timers, wall_now() and all that waits on the loop
// follow. For tests whose peers run on the same loop (doubles, scripted servers) or, for this loop,
// on a WorkerPool; not for other processes, which live in real time. `limit` is the CPU
// time that the test may take: a machine that is busy with other things fails no test.
void run_in_test_time(const std::function<Task<>()>& body,
                      std::chrono::steady_clock::duration limit = std::chrono::seconds(30));

}  // namespace gitops::test

// ASSERT_* return, which a coroutine cannot; these co_return. More text may be streamed in.
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

// For a Result: shows the error when there is no value.
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
