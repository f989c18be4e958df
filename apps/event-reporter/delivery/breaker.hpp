#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/core/backoff.hpp"
#include "common/core/time.hpp"

namespace gitops::reporter {

// A circuit breaker: decides when requests may be sent to a peer, and how many at a time.
//
//   closed --(several failures or refusals in a row, or a failure that asks for a pause)--> open
//   open --(the pause is over: one attempt)--> probing --(success)--> closed
//                                              probing --(failure)--> open, with a longer pause
//
// While open, nothing is sent. After closing, there is one permit, and each success adds one, so the
// requests in flight at most double in a round trip until they reach the maximum. A failure before
// that halves the permits.
//
// Pure: time is an argument and never goes back. Every permit is returned exactly once.
class Breaker {
 public:
  enum class State { closed, open, probing };
  struct Options {
    unsigned failures = 5;                                     // in a row, until it opens
    std::size_t max_permits = 64;                              // at a time
    Backoff::Options pauses{.max = std::chrono::seconds(15)};  // full jitter
    std::chrono::milliseconds max_asked_pause = std::chrono::minutes(5);
  };
  // The permission for one attempt. Its outcome is ignored when the breaker has opened since.
  struct Permit {
    std::uint64_t period = 0;
  };

  Breaker(Options options, std::uint64_t seed);

  // Returns a permit; absent when the caller must wait.
  [[nodiscard]] std::optional<Permit> try_acquire(Clock::time_point now);
  // Records that the peer responded to the attempt.
  void succeeded(Permit permit);
  // Records a failure that the peer caused. A positive `asked_pause` opens the breaker at once for
  // at least that long (at most max_asked_pause), plus up to a tenth at random.
  void failed(Permit permit, Clock::time_point now,
              std::chrono::milliseconds asked_pause = std::chrono::milliseconds{0});
  // Records that the peer refused the attempt, because of the attempt, the path or the peer. Counts as
  // a failure in a row, and leaves the number of permits unchanged. Opens the breaker for at least
  // `pause`.
  void refused(Permit permit, Clock::time_point now,
               std::chrono::milliseconds pause = std::chrono::milliseconds{0});
  // Returns the permit of an attempt that was cancelled or whose outcome does not concern the peer.
  void abandoned(Permit permit, Clock::time_point now);
  // Ends the pause, since the cause of the failures may be gone.
  void end_pause(Clock::time_point now);

  [[nodiscard]] State state() const { return state_; }
  // Returns true when an attempt may start: the breaker is closed, or a probe is due.
  [[nodiscard]] bool lets_through(Clock::time_point now) const;
  // The time of the next probe; meaningful while open.
  [[nodiscard]] Clock::time_point next_probe() const { return next_probe_; }
  // Number of permits that may be out at a time: 0 while open, 1 while probing.
  [[nodiscard]] std::size_t permitted() const;
  // Number of permits not returned yet, including those from before it opened; at most max_permits.
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }

 private:
  void open(Clock::time_point now, std::chrono::milliseconds asked_pause);
  // Takes the permit back; returns true when its outcome counts.
  bool take_back(Permit permit);

  Options options_;
  Backoff pauses_;
  State state_ = State::closed;
  std::uint64_t period_ = 0;  // incremented each time it opens
  std::size_t ramp_;          // permits at a time while closed
  std::size_t in_flight_ = 0;
  std::size_t in_period_ = 0;  // permits of in_flight_ that belong to this period
  unsigned failures_ = 0;      // in a row
  Clock::time_point next_probe_{};
};

// Returns "closed", "open" or "probing".
std::string_view to_string(Breaker::State state);

}  // namespace gitops::reporter
