#include "event-reporter/delivery/breaker.hpp"

#include <algorithm>

namespace gitops::reporter {

using std::chrono::milliseconds;

Breaker::Breaker(Options options, std::uint64_t seed)
    : options_(options), pauses_(options.pauses, seed) {
  options_.failures = std::max(options_.failures, 1U);
  options_.max_permits = std::max<std::size_t>(options_.max_permits, 1);
  ramp_ = options_.max_permits;
}

std::size_t Breaker::permitted() const {
  switch (state_) {
    case State::closed:
      return ramp_;
    case State::open:
      return 0;
    case State::probing:
      return 1;
  }
  return 0;
}

bool Breaker::lets_through(Clock::time_point now) const {
  return state_ == State::closed || (state_ == State::open && now >= next_probe_);
}

std::optional<Breaker::Permit> Breaker::try_acquire(Clock::time_point now) {
  if (!lets_through(now)) return std::nullopt;
  if (state_ == State::closed && in_period_ >= ramp_) return std::nullopt;
  // This limit never prevents a probe: the failure that opened the breaker returned a permit.
  if (in_flight_ >= options_.max_permits) return std::nullopt;
  if (state_ == State::open) state_ = State::probing;
  ++in_flight_;
  ++in_period_;
  return Permit{.period = period_};
}

bool Breaker::take_back(Permit permit) {
  --in_flight_;
  if (permit.period != period_) return false;
  --in_period_;
  return true;
}

void Breaker::succeeded(Permit permit) {
  if (!take_back(permit)) return;
  failures_ = 0;
  if (state_ == State::probing) {
    state_ = State::closed;
    pauses_.reset();
    ramp_ = 1;
  } else {
    ramp_ = std::min(ramp_ + 1, options_.max_permits);
  }
}

void Breaker::failed(Permit permit, Clock::time_point now, milliseconds asked_pause) {
  asked_pause = std::min(asked_pause, options_.max_asked_pause);
  if (!take_back(permit)) {
    // A permit from before the breaker opened changes only the pause that the peer requires.
    if (state_ == State::open) next_probe_ = std::max(next_probe_, now + asked_pause);
    return;
  }
  ++failures_;
  if (state_ == State::probing || failures_ >= options_.failures ||
      asked_pause > milliseconds::zero()) {
    open(now, asked_pause);
  } else if (ramp_ < options_.max_permits) {
    ramp_ = std::max<std::size_t>(ramp_ / 2, 1);
  }
}

void Breaker::refused(Permit permit, Clock::time_point now, milliseconds pause) {
  if (!take_back(permit)) return;
  ++failures_;
  if (state_ == State::probing || failures_ >= options_.failures) open(now, pause);
}

void Breaker::abandoned(Permit permit, Clock::time_point now) {
  if (!take_back(permit) || state_ != State::probing) return;
  state_ = State::open;
  next_probe_ = now;
}

void Breaker::end_pause(Clock::time_point now) {
  if (state_ == State::open) next_probe_ = std::min(next_probe_, now);
}

void Breaker::open(Clock::time_point now, milliseconds asked_pause) {
  state_ = State::open;
  next_probe_ = now + pauses_.next(asked_pause);
  failures_ = 0;
  ++period_;
  in_period_ = 0;
}

std::string_view to_string(Breaker::State state) {
  switch (state) {
    case Breaker::State::closed:
      return "closed";
    case Breaker::State::open:
      return "open";
    case Breaker::State::probing:
      return "probing";
  }
  return "open";
}

}  // namespace gitops::reporter
