#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gitops::test {

// The state of one object that exists.
struct ObjectState {
  // Distinguishes the states of the object, and so shows their order; empty: an event does not tell it.
  std::string content;
  // Everything else that the model compares, as text for people.
  std::string rest;
  // The part of the state of which no change may be skipped while all is well.
  std::string milestone = {};
};

// What the receiver reads from one event.
struct ReceivedEvent {
  std::string object;  // its identity (docs/reference/events.md, "Duties of a receiver")
  std::string id;
  std::uint64_t sequence = 0;          // 0: missing
  std::optional<ObjectState> state{};  // absent: the object was deleted
  std::string sender{};                // for people
};

// How many events may arrive twice. Delivery is at least once; an event is sent again only for
// these reasons, so the sum over the whole history is the bound:
//
//   unanswered   the posts in flight when a connection, an answer or a process was lost
//   uncommitted  acknowledgements shortly before a kill that the ledger's file may lack
//   taken        per taking of a shard from somebody else: per name of the shard, its application
//                and resources as they are, once more
//   deleted      per deletion: once more by each other process that reported or saw the application
struct AllowedDuplicates {
  std::size_t unanswered = 0;
  std::size_t uncommitted = 0;
  std::size_t taken = 0;
  std::size_t deleted = 0;
  [[nodiscard]] std::size_t total() const { return unanswered + uncommitted + taken + deleted; }
};

// The true states of all objects, next to those that a receiver derives from events. The receiver
// does what docs/reference/events.md asks of it: it takes events as they arrive, and ignores those whose
// sequence is not above that of the last event that it took about the same object. Pure.
class HistoryModel {
 public:
  // -- the truth --
  // Whether the states of an object are told in the order in which they were made. Mixed: the object's
  // states are read from two sources, so a deletion may be told late, and the state of an object that
  // was deleted may be that of another one with its name.
  enum class Order { strict, mixed };
  // The object has this state from now on.
  void set(const std::string& object, ObjectState state, Order order = Order::strict);
  // The object does not exist any more; without effect when it never did.
  void remove(const std::string& object);
  // Until the next set() or remove() nobody can tell the state of the object: the last one that was
  // told stays. Without effect when the object never existed.
  void hide(const std::string& object);

  // -- the receiver --
  // Takes the next event, in order of arrival. A replica that lost its shard may tell a deletion before the
  // holder tells a state that it had read until then. This is the one step back that is right, and the
  // holder's own deletion is missing until it comes.
  void receive(const ReceivedEvent& event);
  // The event was answered 413, so the next one with this id may lack its content.
  void note_too_large(const std::string& id) { too_large_.insert(id); }

  // One line for each difference of the receiver from the truth: a missing or outdated state, an
  // unreported deletion. Empty when nothing was lost.
  [[nodiscard]] std::vector<std::string> lost() const;
  // Events that are wrong in any case: of unknown objects, with a state that the object never had, in
  // another order than the states were made, with an id or a sequence of an event with another
  // content, or without a sequence.
  [[nodiscard]] const std::vector<std::string>& wrong() const { return wrong_; }

  // Between these two calls all is well: skipped() then names each milestone that was made and not
  // told. Objects that were deleted meanwhile do not count.
  void begin_calm();
  void end_calm() { calm_ = false; }
  [[nodiscard]] std::vector<std::string> skipped() const;

  [[nodiscard]] std::size_t events() const { return events_; }
  // Events whose id had arrived before.
  [[nodiscard]] std::size_t duplicates() const { return events_ - contents_.size(); }
  // Every event of the objects that the text names, and of the application whose uid it names, in the
  // order of arrival: ids with senders, and whether it was taken. Before them the last true states.
  [[nodiscard]] std::string trails(std::string_view text) const;

  // The same truth before the first event.
  [[nodiscard]] HistoryModel without_events() const;

 private:
  struct Truth {
    Order order = Order::strict;
    bool hidden = false;
    std::optional<ObjectState> state;  // absent: it was deleted
    // The content of each of its states so far; absent: deleted.
    std::vector<std::optional<std::string>> history;
  };
  struct Picture {
    std::uint64_t sequence = 0;
    std::optional<ObjectState> state;  // absent: deleted
    std::size_t at = 0;                // index in Truth::history
    // While the object is deleted: who told so, and the index before.
    std::set<std::string> deleted_by;
    std::size_t at_before = 0;
    std::map<std::uint64_t, std::string> by_sequence;
    std::string trail;
  };
  struct Milestones {
    std::vector<std::string> made;
    std::vector<std::string> told;
  };
  [[nodiscard]] std::optional<std::size_t> place(const Truth& truth, const ReceivedEvent& event,
                                                 std::size_t from) const;

  std::map<std::string, Truth> truths_;          // of every object that ever was
  std::map<std::string, Picture> pictures_;      // of the objects with events
  std::map<std::string, std::string> contents_;  // of events, by id
  std::set<std::string> too_large_;              // ids
  std::map<std::string, Milestones> milestones_;
  bool calm_ = false;
  std::size_t events_ = 0;
  std::vector<std::string> wrong_;
};

}  // namespace gitops::test
