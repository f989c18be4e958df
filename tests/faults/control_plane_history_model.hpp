#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gitops::test {

// An event that a sender posts. The same sequence of an object always has the same event.
struct PostedEvent {
  std::string object;  // its identity (docs/reference/events.md, "Duties of a receiver")
  std::uint64_t sequence = 0;
  std::string content = {};  // of the object's state; empty: the object was deleted
  std::string uid = {};
  // A deletion of the object's earlier uid, posted after a later one was acknowledged: it changes nothing.
  bool is_of_earlier_uid = false;
};

// The state of an object at the control plane.
struct StoredObject {
  std::string object;
  std::uint64_t sequence = 0;
  std::string content = {};
  std::string uid = {};
  bool is_gone = false;
  std::vector<std::uint64_t> milestones = {};  // sequences of its timeline
};

// The posted events and their acknowledgements, next to what the control plane has stored. The stored state of an object
// has to be that of its highest acknowledged sequence, or of an event above it: an event without an acknowledgement may
// have been stored, too. Pure.
class ControlPlaneHistoryModel {
 public:
  // Before each attempt.
  void post(const PostedEvent& event);
  void acknowledge(const PostedEvent& event);

  // One line for each acknowledged event that is lost: above the sequence that is stored for its object.
  [[nodiscard]] std::vector<std::string> lost(std::span<const StoredObject> stored) const;
  // One line for each stored state that is wrong in any case: of an unknown object or sequence, with another content or
  // uid than that event, live after a deletion, gone without one, or twice; and for each milestone that never was.
  [[nodiscard]] std::vector<std::string> wrong(std::span<const StoredObject> stored) const;

  [[nodiscard]] std::size_t attempts() const { return attempts_; }
  [[nodiscard]] std::size_t events() const { return events_; }
  // Events whose acknowledgement arrived.
  [[nodiscard]] std::size_t acknowledged() const { return acknowledged_; }

 private:
  struct Posted {
    PostedEvent event;
    bool is_acknowledged = false;
  };
  using Events = std::map<std::uint64_t, Posted>;  // by sequence
  static void judge(const Events& events, const StoredObject& stored,
                    std::vector<std::string>& wrong);

  std::map<std::string, Events> objects_;
  std::size_t attempts_ = 0;
  std::size_t events_ = 0;
  std::size_t acknowledged_ = 0;
};

}  // namespace gitops::test
