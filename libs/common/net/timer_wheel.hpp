#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

#include "common/core/async.hpp"

namespace gitops::net {

class WheelTimer;

// Timer wheel for deadlines that are moved often and rarely pass. All deadlines share one timer of
// the loop, and moving a deadline to a later time is a single store. An expiry is noticed up to 100
// ms late, never early. The loop's timer runs only while a deadline is armed. Loop thread only; it
// must outlive its timers.
class TimerWheel {
 public:
  explicit TimerWheel(const Executor& executor);
  ~TimerWheel();
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

 private:
  friend class WheelTimer;
  static constexpr std::size_t kSlots = 1024;

  void insert(WheelTimer& timer);
  void rest();
  void arm();
  void tick();

  struct Link {
    Link* next = nullptr;
    Link* previous = nullptr;
  };
  Timer timer_;
  Clock::time_point begin_ = Clock::now();
  std::array<Link, kSlots> slots_;  // heads of circular lists
  std::size_t current_ = 0;         // completed ticks since begin_
  std::size_t armed_ = 0;           // timers in slots
  bool running_ = false;
  bool ticking_ = false;  // within tick()
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Deadline on a wheel. Calls its function once after the deadline, from the loop; the function may
// destroy the timer.
class WheelTimer : private TimerWheel::Link {
 public:
  WheelTimer(TimerWheel& wheel, std::move_only_function<void()> on_expiry)
      : wheel_(wheel), on_expiry_(std::move(on_expiry)) {}
  ~WheelTimer();
  WheelTimer(const WheelTimer&) = delete;
  WheelTimer& operator=(const WheelTimer&) = delete;

  // Sets the deadline; kNever disarms the timer.
  void expires_at(Deadline deadline) {
    deadline_ = deadline;
    if (deadline < looked_at_) wheel_.insert(*this);
  }

 private:
  friend class TimerWheel;
  // Returns false if the timer was in no slot.
  bool unlink();

  TimerWheel& wheel_;
  Deadline deadline_ = kNever;
  Deadline looked_at_ = kNever;  // time of its slot; kNever if in none
  std::move_only_function<void()> on_expiry_;
};

}  // namespace gitops::net
