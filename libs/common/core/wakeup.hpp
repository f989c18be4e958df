#pragma once

#include <memory>
#include <mutex>

#include "common/core/async.hpp"

namespace gitops {

// Records whether other threads may still post to a loop; outlives the loop.
struct LoopGateState;

// Lets any thread wake one coroutine that waits on its loop, once. Both sides hold it by
// std::shared_ptr: ring() is safe at any time, also when the waiter or its loop is gone.
class Wakeup : public std::enable_shared_from_this<Wakeup> {
 public:
  // `executor` is the loop of the coroutine that waits.
  explicit Wakeup(const Executor& executor);
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  // Wakes the waiter. Any thread. Memory written before the call is visible after wait(). Returns
  // false when the waiter is gone.
  bool ring();
  // Waits on the loop, once. Returns true when it was rung, also before this call; false at the
  // deadline. Throws operation_aborted when the waiting coroutine is cancelled.
  Task<bool> wait(Deadline deadline);

 private:
  Executor executor_;
  const std::shared_ptr<LoopGateState> gate_;  // locked after mutex_
  std::mutex mutex_;
  bool rung_ = false;
  bool left_ = false;
  Timer* timer_ = nullptr;  // in the frame of wait(); written by the loop alone
};

}  // namespace gitops
