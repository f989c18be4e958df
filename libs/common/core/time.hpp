#pragma once

#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/error.hpp"

namespace gitops {

// The steady clock. All code and every Timer (core/async.hpp) uses it, so a test can drive it: see
// run_in_test_time() in tests/support/run_coro.hpp. Programs never stop it.
class Clock {
 public:
  using duration = std::chrono::steady_clock::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr bool is_steady = true;

  static time_point now() noexcept {
    const rep at = stopped_at_.load(std::memory_order_relaxed);
    return at == kRunning ? std::chrono::steady_clock::now() : time_point(duration(at));
  }

  // Stops a test from moving the clock while another thread works for the loop.
  class Hold {
   public:
    Hold() noexcept { ++holds_; }
    Hold(Hold&& other) noexcept : holds_by_us_(std::exchange(other.holds_by_us_, false)) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (holds_by_us_) --holds_;
    }

   private:
    bool holds_by_us_ = true;
  };

 private:
  friend class TestTime;  // tests/support/run_coro.cpp
  static void stop_at(time_point when);
  static void run();

  static constexpr rep kRunning = std::numeric_limits<rep>::min();
  inline static std::atomic<rep> stopped_at_ = kRunning;
  inline static std::atomic<int> holds_ = 0;
  static std::atomic<std::chrono::milliseconds::rep> wall_ahead_;  // while stopped: wall - steady
  friend std::chrono::sys_time<std::chrono::milliseconds> wall_now();
};

using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

// The moment at which a call gives up. It travels down the call tree as a value.
using Deadline = Clock::time_point;

// A deadline that never comes.
inline constexpr Deadline kNever = Deadline::max();

// Returns now plus `wait`; kNever when the sum would overflow.
Deadline deadline_after(Clock::duration wait);

// Returns the time of day. It moves with Clock while a test drives that.
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
// Returns the shortest such text: 90 s is "1m30s".
std::string format_duration(std::chrono::milliseconds duration);

// Reads the value of a Retry-After header: seconds, or an HTTP date relative to `now`. Unreadable
// or past values give zero; the result is capped at 5 minutes.
std::chrono::milliseconds parse_retry_after(std::string_view value, WallTime now);

}  // namespace gitops
