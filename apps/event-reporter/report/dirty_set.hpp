#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/core/time.hpp"
#include "common/core/work_queue.hpp"
#include "event-reporter/watch/milestone.hpp"

namespace gitops::reporter {

// What is to be reported about one object, in this order: its deletion, then its states.
struct DirtyWork {
  Clock::time_point since{};  // of the oldest change in it
  // The last text of an object that was deleted; empty: no deletion is due.
  std::string tombstone;
  bool live = false;  // it exists, as far as we know
  // Its states, oldest first. None although it is live: the newest is to be read.
  struct State {
    std::string text;
    Milestone milestone;
  };
  std::deque<State> states;
  // Its own event is due although nothing changed.
  bool heartbeat = false;

  [[nodiscard]] bool empty() const { return tombstone.empty() && !live; }
};

// The objects whose changes were not acknowledged yet, each once, with the texts of their changes
// as long as there is room, and in front of the WorkQueue that the workers take keys from. A key
// that the queue refuses stays here and enters when there is room: nothing is dropped.
//
// No state of another milestone is skipped as long as the texts fit; beyond that the newest of each
// operation wins, then the newest. Loop thread only.
class DirtySet {
 public:
  struct Limits {
    std::size_t states = 16;                           // per object
    std::size_t bytes = std::size_t{8} * 1024 * 1024;  // texts of all objects that wait
  };
  DirtySet(WorkQueue& queue, Limits limits) : queue_(queue), limits_(limits) {}

  // The object is new or changed. An empty text is read when it is reported.
  void changed(const std::string& key, std::string_view text, Milestone milestone,
               Clock::time_point now);
  // It is gone; states of it that were not taken yet are not reported any more. Of two deletions in
  // a row the first counts: what came between was never reported.
  void deleted(const std::string& key, std::string tombstone, Clock::time_point now);
  // Its own event is due once more.
  void heartbeat(const std::string& key, Clock::time_point now);

  // A worker takes what there is about a key. Until done() it counts for oldest().
  [[nodiscard]] DirtyWork take(const std::string& key);
  // The worker reported everything it took.
  void done(const std::string& key) { in_work_.erase(key); }
  // The worker could not report `rest`; what came meanwhile is newer.
  void give_back(const std::string& key, DirtyWork rest);

  // Keys that the queue refused enter while there is room.
  void refill();
  // Nothing that waits needs to wait any longer for its next attempt.
  void bring_forward();
  // Forgets the states of all keys that `which` names; deletions stay.
  void drop_live(const std::function<bool(std::string_view key)>& which);
  // Forgets all about these keys that no worker has taken.
  void drop(const std::function<bool(std::string_view key)>& which);

  // Whether work about a key that `which` names is under way.
  [[nodiscard]] bool in_work(const std::function<bool(std::string_view key)>& which) const;
  [[nodiscard]] Clock::duration oldest(Clock::time_point now) const;
  [[nodiscard]] std::size_t overdue() const { return overdue_.size(); }
  [[nodiscard]] std::size_t size() const { return dirty_.size(); }
  [[nodiscard]] std::size_t kept_bytes() const { return kept_bytes_; }
  // Waiting or in work.
  [[nodiscard]] bool contains(const std::string& key) const {
    return dirty_.contains(key) || in_work_.contains(key);
  }

 private:
  DirtyWork& mark(const std::string& key, Clock::time_point now);
  void enqueue(const std::string& key);
  void keep(DirtyWork& work, std::string_view text, Milestone milestone);
  void fit(DirtyWork& work);
  void drop_states(DirtyWork& work);

  WorkQueue& queue_;
  Limits limits_;
  std::map<std::string, DirtyWork, std::less<>> dirty_;
  std::set<std::string> overdue_;                               // dirty keys that the queue refused
  std::unordered_map<std::string, Clock::time_point> in_work_;  // dirty since
  std::size_t kept_bytes_ = 0;
};

}  // namespace gitops::reporter
