#pragma once

#include <list>

#include "common/core/async.hpp"

namespace gitops {

// A queue of coroutines, first come, first served. Each one holds a Ticket and proceeds when it is the
// first and its condition holds. Loop thread only; outlives its tickets.
class WaitLine {
 public:
  explicit WaitLine(const Executor& executor) : executor_(executor) {}

  // A position in the queue. Its destructor wakes the next one.
  class Ticket {
   public:
    explicit Ticket(WaitLine& line)
        : line_(line), at_(line.waiting_.emplace(line.waiting_.end(), line.executor_)) {}
    ~Ticket() {
      line_.waiting_.erase(at_);
      line_.wake_first();
    }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    [[nodiscard]] bool is_first() const { return at_ == line_.waiting_.begin(); }
    // Waits until this ticket is woken (true) or until the deadline (false).
    Task<bool> wait(Deadline deadline = kNever) { return at_->wait(deadline); }

   private:
    WaitLine& line_;
    std::list<Event>::iterator at_;
  };

  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  void wake_first() {
    if (!waiting_.empty()) waiting_.front().notify_all();
  }
  void wake_all() {
    for (auto& waiting : waiting_) waiting.notify_all();
  }

 private:
  Executor executor_;
  std::list<Event> waiting_;
};

}  // namespace gitops
