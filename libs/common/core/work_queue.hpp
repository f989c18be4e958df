#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "common/core/async.hpp"

namespace gitops {

// The queue between watchers and workers: keys, not events, as in client-go's workqueue.
//
// - A key stands in it at most once; adding it again changes nothing.
// - A key that is added while a worker holds it runs once more after done(); two workers never hold
//   the same key.
// - At most `capacity` distinct keys wait; a further key is refused (false) and stays the caller's
//   concern: it must be known as dirty elsewhere. A key that comes back from a worker is never
//   refused.
// - retry() puts a key back after a delay; a delayed key counts as waiting, and add() brings it
//   forward.
// Loop thread only. stop() ends every wait().
class WorkQueue {
 public:
  WorkQueue(const Executor& executor, std::size_t capacity);

  // False when the queue is full or stopped.
  bool add(const std::string& key);
  // Waits until a key is ready; false when the queue was stopped.
  Task<bool> wait();
  // Hands a ready key over, first in first out; nothing when another worker was faster.
  std::optional<std::string> take();
  // The worker is finished with a key that take() gave it.
  void done(const std::string& key);
  // Like done(), and the key comes back after `delay`, or at once when it was added meanwhile.
  void retry(const std::string& key, Clock::duration delay);
  // Drops what waits; workers that hold a key still call done().
  void stop();

  // Keys that wait, delayed ones included; keys in work are not counted.
  [[nodiscard]] std::size_t size() const { return waiting_.size() + due_.size(); }
  [[nodiscard]] std::size_t in_work() const { return working_.size(); }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

 private:
  void make_ready(const std::string& key);
  void release_due(Clock::time_point now);
  // Takes the key from its worker; true when it was added meanwhile.
  bool leave_work(const std::string& key);

  std::size_t capacity_;
  std::deque<std::string> ready_;
  std::unordered_set<std::string> waiting_;  // members of ready_
  std::set<std::pair<Clock::time_point, std::string>> delayed_;
  std::unordered_map<std::string, Clock::time_point> due_;  // members of delayed_
  std::unordered_map<std::string, bool> working_;           // value: added again meanwhile
  Event changed_;
  bool stopped_ = false;
};

}  // namespace gitops
