#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops {

using Clock = std::chrono::steady_clock;
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

// The moment after which nobody waits for an answer any more. Travels down the call tree as a
// value.
using Deadline = Clock::time_point;

// A deadline that never comes.
inline constexpr Deadline kNever = Deadline::max();

// Now plus `wait`; kNever when the sum would overflow.
Deadline deadline_after(Clock::duration wait);

WallTime wall_now();

// "2026-03-04T09:15:27Z": UTC, whole seconds, as Kubernetes and Go write metav1.Time.
std::string format_rfc3339(WallTime time);
// "2026-03-04T09:15:27.412Z": UTC, always three digits.
std::string format_rfc3339_millis(WallTime time);
// "2026-03-04T09:15:27.412000Z": UTC, six digits, as Kubernetes writes metav1.MicroTime.
std::string format_rfc3339_micros(WallTime time);

// Reads RFC 3339 with optional fraction (any length; cut to milliseconds) and any offset.
Result<WallTime> parse_rfc3339(std::string_view text);

// Reads a duration as Go writes it: "300ms", "10s", "1m30s", "24h"; a bare number means seconds.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);
// The shortest such text: 90 s is "1m30s".
std::string format_duration(std::chrono::milliseconds duration);

// Reads the value of a Retry-After header: seconds, or an HTTP date relative to `now`. Unreadable
// or past values give zero; the result is capped at 5 minutes.
std::chrono::milliseconds parse_retry_after(std::string_view value, WallTime now);

}  // namespace gitops
