#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/core/time.hpp"
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
// receiver drops known ids and events that are older than its state: by resourceVersion of the
// application, then by the event's time. Applications are identified by uid. Clocks of senders may
// be wrong by whole hours. Pure.
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
  // Takes each event once, in order of arrival; `arrived` is by this machine's clock.
  void receive(const FakePlatform::Report& report, WallTime arrived);

  // One line for each difference of the receiver from the truth: a missing or outdated state, an
  // unreported deletion. Empty when nothing was lost.
  [[nodiscard]] std::vector<std::string> lost() const;
  // Events that are wrong in any case: of unknown applications, without an id, or made from an
  // older state of the application than an earlier event of the same sender.
  [[nodiscard]] std::vector<std::string> wrong() const;

  [[nodiscard]] std::size_t events() const { return events_; }
  // Every event of the application, in the order of arrival: ids with senders and times.
  [[nodiscard]] std::string trail(const std::string& uid) const;
  // Events whose id had arrived before.
  [[nodiscard]] std::size_t duplicates() const { return events_ - ids_.size(); }

 private:
  struct Order {
    std::uint64_t version = 0;  // the highest number: a deletion that no watch saw
    WallTime made;
    auto operator<=>(const Order&) const = default;
  };
  template <class State>
  struct Received {
    Order order;
    bool gone = false;
    State state;
  };
  struct Picture {
    Received<AppTruth> app;
    std::map<std::string, Received<ResourceTruth>> resources;
    // Time and version of each event, by sender.
    std::map<std::string, std::vector<std::pair<WallTime, std::uint64_t>>> made;
  };

  std::map<std::string, App> live_;         // by uid
  std::map<std::string, std::string> all_;  // name by uid, of every application that ever was
  std::map<std::string, Picture> pictures_;
  std::map<std::string, std::string> trails_;
  std::set<std::string> ids_;
  std::size_t events_ = 0;
  std::vector<std::string> wrong_;
};

}  // namespace gitops::test
