#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "common/core/async.hpp"

// The waits of the tests. A wait polls a condition until it holds or the limit has passed, and names
// what was not seen. There is one poll period: it starts at 1 ms and doubles up to 50 ms, or up to
// 5 ms in test time, where a poll costs no time.
namespace gitops::test {

// Limit of a wait that names none: 30 s, or 10 min in test time.
Clock::duration default_limit();

// Deadline of a call that a test expects to succeed.
inline Deadline soon(Clock::duration limit = std::chrono::seconds(30)) {
  return deadline_after(limit);
}

// Polls on the loop, in real time as in test time. EXPECT_TRUE and EXPECT_FALSE print `what` when
// they fail.
Task<testing::AssertionResult> eventually(std::function<bool()> condition, std::string what,
                                          Clock::duration limit = default_limit());
// The same for a condition that awaits.
Task<testing::AssertionResult> eventually(std::function<Task<bool>()> condition, std::string what,
                                          Clock::duration limit = default_limit());
// The same for a condition that becomes true while another thread holds the test clock
// (Clock::Hold): yields instead of sleeping. The limit is default_limit() of real time.
Task<testing::AssertionResult> eventually_while_clock_is_held(std::function<bool()> condition,
                                                              std::string what);

/// Blocks the thread until the predicate holds: for tests without a loop. After the timeout it
/// prints "timed out … waiting for WHAT" to stderr and returns false.
bool wait_until(const std::function<bool()>& predicate, std::chrono::milliseconds timeout,
                std::string_view what,
                std::chrono::milliseconds interval = std::chrono::milliseconds(25));

/// As wait_until(), but throws after the timeout.
void require_until(const std::function<bool()>& predicate, std::chrono::milliseconds timeout,
                   std::string_view what,
                   std::chrono::milliseconds interval = std::chrono::milliseconds(25));

/// Makes every wait_until() that would wait throw "interrupted". May be called from a signal
/// handler.
void interrupt_waits() noexcept;

}  // namespace gitops::test
