#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/wait_line.hpp"

namespace gitops {

// The queue between watchers and workers: keys, not events, as in client-go's workqueue.
//
// - A key is in it at most once; adding it again changes nothing.
// - A key that is added while a worker holds it runs once more after done(); two workers never hold
//   the same key.
// - At most `capacity` distinct keys wait in the normal lane; a further key is refused (false), and
//   the caller must keep it. A key that comes back from a worker is never refused.
// - retry() puts a key back after a delay, and add() brings it forward. Delayed keys do not count
//   for the capacity.
// - Slow keys wait in a lane of their own, outside the capacity, too. take() returns one only while
//   there is a permit for it, and then the key that became ready first, from either lane.
// Loop thread only. stop() ends every wait().
class WorkQueue {
 public:
  struct SlowLane {
    // Returns whether a key that becomes ready is slow. Empty: all keys are normal.
    std::function<bool(const std::string& key)> is_slow;
    // Returns whether a worker may take a slow key now. A permit is freed when a key leaves its
    // worker.
    std::function<bool()> has_place;
  };
  // A positive `batch_period` makes the first key that is added wait that long for others, and all
  // of them become ready together: the work on a batch costs less per key. It does not delay keys
  // that come back.
  WorkQueue(const Executor& executor, std::size_t capacity, SlowLane slow = {},
            Clock::duration batch_period = {});

  // Adds a key; returns false when the queue is full or stopped.
  bool add(const std::string& key);
  // Waits until a key can be taken; false when the queue was stopped.
  Task<bool> wait();
  // Returns a ready key, first in first out; nothing when another worker was faster.
  std::optional<std::string> take();
  // Ends the work on a key that take() returned.
  void done(const std::string& key);
  // Ends the work as done() does, and adds the key again after `delay`, or at once when it was
  // added meanwhile.
  void retry(const std::string& key, Clock::duration delay);
  // Ends the delays of at most `most` keys, those that end first. Returns their number.
  std::size_t bring_forward(std::size_t most);
  // Drops the waiting keys; workers that hold a key still call done().
  void stop();

  // Returns whether the key waits, is delayed, or is held by a worker.
  [[nodiscard]] bool contains(const std::string& key) const {
    return waiting_.contains(key) || due_.contains(key) || working_.contains(key);
  }
  // Number of waiting keys, delayed ones included; keys in work are not counted.
  [[nodiscard]] std::size_t size() const { return waiting_.size() + due_.size(); }
  [[nodiscard]] std::size_t delayed() const { return due_.size(); }
  [[nodiscard]] std::size_t in_work() const { return working_.size(); }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

 private:
  struct Ready {
    std::uint64_t number = 0;  // ascending in the order in which keys got ready
    std::string key;
  };
  using Lane = std::deque<Ready>;

  void make_ready(const std::string& key);
  void gather(const std::string& key);
  void release_due(Clock::time_point now);
  // The next time at which release_due() has something to do.
  [[nodiscard]] Deadline next_release() const;
  // Returns the lane of the next key to be taken; null when there is none.
  [[nodiscard]] Lane* next_lane();
  // Takes the key from its worker; true when it was added meanwhile.
  bool leave_work(const std::string& key);

  std::size_t capacity_;
  SlowLane slow_;
  Clock::duration batch_period_;
  std::vector<std::string> batch_;
  Clock::time_point batch_ends_;  // when its keys get ready
  Lane normal_keys_;
  Lane slow_keys_;
  std::uint64_t made_ready_ = 0;
  std::unordered_set<std::string> waiting_;  // keys of both lanes and of the batch
  std::set<std::pair<Clock::time_point, std::string>> delayed_;
  std::unordered_map<std::string, Clock::time_point> due_;  // times of delayed_ by key
  std::unordered_map<std::string, bool> working_;           // value: added again meanwhile
  WaitLine line_;  // callers of wait(): a key wakes one of them, not all
  bool stopped_ = false;
};

}  // namespace gitops
