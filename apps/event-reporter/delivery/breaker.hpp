#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/core/backoff.hpp"
#include "common/core/time.hpp"

namespace gitops::reporter {

// Decides when something may be sent to a peer, and how much at the same time.
//
//   closed --(several failures in a row, or one that asks for a pause)--> open
//   open --(the pause is over: one attempt)--> probing --(success)--> closed
//                                              probing --(failure)--> open, with a longer pause
//
// While open, nothing is sent. After closing, one permit is given at a time, and each success adds
// one: what is in flight at most doubles in a round trip, until it reaches the maximum. A failure
// on the way there halves it.
//
// Pure: time comes in and never goes back. Every permit is given back exactly once.
class Breaker {
 public:
  enum class State { closed, open, probing };
  struct Options {
    unsigned failures = 5;                                     // in a row, that open it
    std::size_t max_permits = 64;                              // at a time
    Backoff::Options pauses{.max = std::chrono::seconds(15)};  // full jitter
    std::chrono::milliseconds max_asked_pause = std::chrono::minutes(5);
  };
  // What try_acquire() gave out. Its outcome has no say once the breaker has opened since.
  struct Permit {
    std::uint64_t period = 0;
  };

  Breaker(Options options, std::uint64_t seed);

  // Permission for one attempt; nothing while it must wait.
  [[nodiscard]] std::optional<Permit> try_acquire(Clock::time_point now);
  // The attempt reached the peer and was answered.
  void succeeded(Permit permit);
  // It failed for a reason that lies with the peer. `asked_pause`, when positive, opens at once and
  // for at least that long (at most max_asked_pause), plus a tenth of it at random.
  void failed(Permit permit, Clock::time_point now,
              std::chrono::milliseconds asked_pause = std::chrono::milliseconds{0});
  // It was given up, or says nothing about the peer.
  void abandoned(Permit permit, Clock::time_point now);
  // What made the peer fail may be gone: the pause ends now.
  void end_pause(Clock::time_point now);

  [[nodiscard]] State state() const { return state_; }
  // True when an attempt that starts now is not in vain: closed, or due for a probe.
  [[nodiscard]] bool lets_through(Clock::time_point now) const;
  // When the next probe may start; meaningful while open.
  [[nodiscard]] Clock::time_point next_probe() const { return next_probe_; }
  // Permits that may be out at a time: 0 while open, 1 while probing.
  [[nodiscard]] std::size_t permitted() const;
  // Permits that are out, those from before it opened included; never more than max_permits.
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }

 private:
  void open(Clock::time_point now, std::chrono::milliseconds asked_pause);
  // Takes the permit back; true when its outcome counts.
  bool take_back(Permit permit);

  Options options_;
  Backoff pauses_;
  State state_ = State::closed;
  std::uint64_t period_ = 0;  // begins anew whenever it opens
  std::size_t ramp_;          // permits at a time while closed
  std::size_t in_flight_ = 0;
  std::size_t in_period_ = 0;  // of in_flight_, those of this period
  unsigned failures_ = 0;      // in a row
  Clock::time_point next_probe_{};
};

// "closed", "open", "probing".
std::string_view to_string(Breaker::State state);

}  // namespace gitops::reporter
