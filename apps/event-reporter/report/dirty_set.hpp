#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "common/core/time.hpp"
#include "common/core/work_queue.hpp"
#include "event-reporter/ledger/digest.hpp"
#include "event-reporter/watch/milestone.hpp"

namespace gitops::reporter {

// Selects objects by their keys.
using KeyFilter = std::function<bool(std::string_view key)>;

// The changes of one object that are to be reported, in this order: its deletion, then its states.
struct DirtyWork {
  Clock::time_point since{};  // time of the oldest change
  // The last known JSON of a deleted object; empty: no deletion is due.
  std::string tombstone;
  bool live = false;  // the object exists, as far as is known
  // A state of the object. A live object without states has its newest state read.
  struct State {
    std::string text;
    Milestone milestone;
    std::optional<Digest> digest = {};  // of the text; absent: not known
  };
  std::deque<State> states;
  // The newest state was to be read; earlier states are not reported any more.
  bool is_from_scratch = false;
  // The object's event is due although nothing changed.
  bool heartbeat = false;

  [[nodiscard]] bool empty() const { return tombstone.empty() && !live; }
};

// The objects with changes that are not acknowledged yet, with the texts of the changes as far as
// memory allows. Fills the WorkQueue that the workers take keys from; a key that the full queue
// refuses stays here until there is room, so no change is dropped. The key with the oldest change is
// then the next one to enter.
//
// While the texts fit, every state of a new milestone is kept. Beyond the limits the newest state of
// each operation is kept, then the newest one; a tombstone is cut to its identity_stub(). Loop thread
// only.
class DirtySet {
 public:
  struct Limits {
    std::size_t states = 16;                           // per object
    std::size_t bytes = std::size_t{8} * 1024 * 1024;  // texts and tombstones of all objects
  };
  DirtySet(WorkQueue& queue, Limits limits) : queue_(queue), limits_(limits) {}

  // Records that the object is new or changed. With an empty text the newest state is read for the
  // report, unless further states come first: these are reported instead.
  void changed(const std::string& key, std::string_view text, Milestone milestone,
               Clock::time_point now, std::optional<Digest> digest = {});
  // Records that the object's newest state is to be read and reported, unless a state of it waits
  // already.
  void touch(const std::string& key, Clock::time_point now);
  // Records that the object was deleted; its waiting states are dropped. Of two deletions in a row
  // the first one counts, because the object between them was never reported.
  void deleted(const std::string& key, std::string tombstone, Clock::time_point now);
  // Ends the backoff of the key, if its work waits.
  void hasten(const std::string& key);
  // Makes the object's event due once more.
  void heartbeat(const std::string& key, Clock::time_point now);

  // Takes the work of a key. It counts for oldest() until done() or give_back().
  [[nodiscard]] DirtyWork take(const std::string& key);
  // Ends the work that was taken: it is reported.
  void done(const std::string& key) {
    in_work_.erase(key);
    dropped_.erase(key);
  }
  // Returns the part of the work that could not be reported; changes since take() are newer.
  void give_back(const std::string& key, DirtyWork rest);

  // Adds keys that the queue refused, while there is room.
  void refill();
  // Ends the backoff of at most `most` keys, and returns their number.
  std::size_t bring_forward(std::size_t most = std::numeric_limits<std::size_t>::max());
  // Returns whether the key waits with the text of a state.
  [[nodiscard]] bool has_states(const std::string& key) const;
  // Returns whether a worker has taken work of the key, or a deletion waits.
  [[nodiscard]] bool is_busy(const std::string& key) const;
  // Drops the states of the keys that `which` selects; their deletions stay.
  void drop_live(const KeyFilter& which);
  // Drops all work of the keys that `which` selects. Work that a worker has taken is dropped when it is
  // given back.
  void drop(const KeyFilter& which);

  // Returns whether a worker has taken work of a key that `which` selects.
  [[nodiscard]] bool in_work(const KeyFilter& which) const;
  [[nodiscard]] Clock::duration oldest(Clock::time_point now) const;
  [[nodiscard]] std::size_t overdue() const { return overdue_.size(); }
  [[nodiscard]] std::size_t size() const { return dirty_.size(); }
  [[nodiscard]] std::size_t kept_bytes() const { return kept_bytes_; }
  // Returns whether the key waits or is in work.
  [[nodiscard]] bool contains(const std::string& key) const {
    return dirty_.contains(key) || in_work_.contains(key);
  }

 private:
  DirtyWork& mark(const std::string& key, Clock::time_point now);
  void enqueue(const std::string& key, const DirtyWork& work);
  void bury(DirtyWork& work, std::string tombstone);
  void keep(DirtyWork& work, std::string_view text, Milestone milestone,
            std::optional<Digest> digest);
  void fit(DirtyWork& work);
  void drop_states(DirtyWork& work);

  WorkQueue& queue_;
  Limits limits_;
  std::map<std::string, DirtyWork, std::less<>> dirty_;
  // Keys that the queue refused, by DirtyWork::since.
  std::set<std::pair<Clock::time_point, std::string>> overdue_;
  std::unordered_map<std::string, Clock::time_point> in_work_;  // taken keys, with DirtyWork::since
  std::unordered_set<std::string> dropped_;                     // taken keys whose work was dropped
  std::size_t kept_bytes_ = 0;
};

}  // namespace gitops::reporter
