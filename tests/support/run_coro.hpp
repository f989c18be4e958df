#pragma once

#include <functional>

#include <gtest/gtest.h>

#include "common/core/async.hpp"

namespace gitops::test {

// Runs `body` as a coroutine on a fresh loop; `co_await asio::this_coro::executor` gives its
// executor. The test fails when the body throws, when it takes longer than `limit`, and when it
// leaves work on the loop behind (a task that was not joined, a socket that still reads).
void run_coro(const std::function<Task<>()>& body, Clock::duration limit = std::chrono::seconds(5));

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
