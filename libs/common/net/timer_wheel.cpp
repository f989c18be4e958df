#include "common/net/timer_wheel.hpp"

#include <algorithm>
#include <cstdint>

namespace gitops::net {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);

}  // namespace

TimerWheel::TimerWheel(const Executor& executor) : timer_(executor) {
  for (auto& slot : slots_) slot.next = slot.previous = &slot;
}

TimerWheel::~TimerWheel() {
  *alive_ = false;
}

bool WheelTimer::unlink() {
  if (next == nullptr) return false;
  previous->next = next;
  next->previous = previous;
  next = previous = nullptr;
  looked_at_ = kNever;
  --wheel_.armed_;
  return true;
}

WheelTimer::~WheelTimer() {
  if (unlink()) wheel_.rest();
}

// Stops the timer after the last deadline: an idle wheel must not keep the loop running.
void TimerWheel::rest() {
  if (armed_ > 0 || ticking_ || !running_) return;
  running_ = false;
  timer_.cancel();
}

void TimerWheel::insert(WheelTimer& timer) {
  // The wheel goes on. If it were stopped here, a deadline that has passed would never expire while
  // it is set again and again.
  timer.unlink();
  if (armed_ == 0 && !running_) {  // the wheel was stopped
    begin_ = Clock::now();
    current_ = 0;
  }
  // Selects the slot of the first tick after the deadline, at most one turn of the wheel ahead.
  const auto left = std::max(timer.deadline_ - begin_, Clock::duration::zero());
  auto at = static_cast<std::size_t>(left / kTick) + 1;
  at = std::clamp(at, current_ + 1, current_ + kSlots - 1);
  timer.looked_at_ = begin_ + kTick * static_cast<std::int64_t>(at);
  Link& slot = slots_[at % kSlots];
  timer.next = &slot;
  timer.previous = slot.previous;
  slot.previous->next = &timer;
  slot.previous = &timer;
  ++armed_;
  if (!running_) arm();
}

void TimerWheel::arm() {
  running_ = true;
  timer_.expires_at(begin_ + kTick * static_cast<std::int64_t>(current_ + 1));
  timer_.async_wait([this, alive = alive_](const boost::system::error_code& ec) {
    if (*alive && !ec) tick();
  });
}

void TimerWheel::tick() {
  const auto now = Clock::now();
  running_ = false;
  ticking_ = true;
  while (begin_ + kTick * static_cast<std::int64_t>(current_ + 1) <= now) {
    ++current_;
    Link& slot = slots_[current_ % kSlots];
    // A timer armed again in the meantime goes to a later slot.
    while (slot.next != &slot) {
      auto& timer = static_cast<WheelTimer&>(*slot.next);
      timer.unlink();
      running_ = true;  // keeps begin_
      if (timer.deadline_ > now) {
        if (timer.deadline_ != kNever) insert(timer);
      } else {
        timer.deadline_ = kNever;
        timer.on_expiry_();
      }
      running_ = false;
    }
  }
  ticking_ = false;
  if (armed_ > 0) arm();
}

}  // namespace gitops::net
