#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "doubles/fake_platform.hpp"

namespace gitops::test {

struct ResourceTruth {
  std::string content;
  std::string sync;
  std::string health;
  bool operator==(const ResourceTruth&) const = default;
};

struct AppTruth {
  std::string content;
  std::string revision;
  std::string sync;
  std::string health;
  bool operator==(const AppTruth&) const = default;
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

// The true state of the applications, next to the state that a receiver derives from events. The
// receiver does what docs/events.md asks of it: it takes events as they arrive, and ignores those
// with a known id and those whose sequence is not above that of the last event that it took about
// the same object. Applications are identified by uid. Pure.
class HistoryModel {
 public:
  // -- the truth --
  struct App {
    std::string name;
    AppTruth state;
    std::map<std::string, ResourceTruth> resources = {};  // by name
    // A finalizer holds it: it must be reported as deleted, its resources in either state.
    bool deleting = false;
  };
  // A new application; the reference holds until it is removed.
  App& add(const std::string& uid, std::string name);
  [[nodiscard]] App& app(const std::string& uid) { return live_.at(uid); }
  void remove(const std::string& uid) { live_.erase(uid); }

  // -- the receiver --
  // Takes the next event, in order of arrival.
  void receive(const FakePlatform::Report& report);

  // One line for each difference of the receiver from the truth: a missing or outdated state, an
  // unreported deletion. Empty when nothing was lost.
  [[nodiscard]] std::vector<std::string> lost() const;
  // Events that are wrong in any case: of unknown applications, with an id or a sequence of an event
  // with another content, or without a sequence.
  [[nodiscard]] std::vector<std::string> wrong() const;

  [[nodiscard]] std::size_t events() const { return events_; }
  // Every event of the application, in the order of arrival: ids with senders, and whether it was
  // taken.
  [[nodiscard]] std::string trail(const std::string& uid) const;
  // Events whose id had arrived before.
  [[nodiscard]] std::size_t duplicates() const { return events_ - ids_.size(); }

 private:
  template <class State>
  struct Received {
    std::uint64_t sequence = 0;
    bool gone = false;
    State state;
    // The content of each event, by sequence.
    std::map<std::uint64_t, std::string> contents;
  };
  struct Picture {
    Received<AppTruth> app;
    std::map<std::string, Received<ResourceTruth>> resources;
  };
  // Takes the event unless it is too old.
  template <class State>
  bool take(Received<State>& known, const FakePlatform::Report& report, bool gone, State state);

  std::map<std::string, App> live_;         // by uid
  std::map<std::string, std::string> all_;  // name by uid, of every application that ever was
  std::map<std::string, Picture> pictures_;
  std::map<std::string, std::string> trails_;
  std::set<std::string> ids_;
  std::size_t events_ = 0;
  std::vector<std::string> wrong_;
};

}  // namespace gitops::test
