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
//   unanswered   the posts under way when a connection, an answer or a process was lost
//   uncommitted  what was acknowledged so shortly before a kill that the ledger's file may lack it
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

// What applications there are, next to what a receiver makes of the events that it got. The
// receiver drops ids that it has seen, and what is older than what it has: by resourceVersion of
// the application, then by the time the event was made. Applications are told apart by uid. Clocks
// of senders may be wrong by whole hours. Pure.
class HistoryModel {
 public:
  // -- the truth --
  struct App {
    std::string name;
    AppTruth state;
    std::map<std::string, ResourceTruth> resources = {};  // by name
    // A finalizer holds it; it is to be reported gone, and what of its resources is is open.
    bool deleting = false;
  };
  // A new application; the reference holds until it is removed.
  App& add(const std::string& uid, std::string name);
  [[nodiscard]] App& app(const std::string& uid) { return live_.at(uid); }
  void remove(const std::string& uid) { live_.erase(uid); }

  // -- the receiver --
  // Each event once, in the order of arrival, which was at `arrived` by our clock.
  void receive(const FakePlatform::Report& report, WallTime arrived);

  // Where the receiver is not where the truth is, one line each: a missing or outdated state, a
  // deletion that it does not know of. Empty when nothing was lost.
  [[nodiscard]] std::vector<std::string> lost() const;
  // Events that must not be, whatever was lost: of unknown applications, without an id, made from
  // an older state of the application than one that the same sender made before.
  [[nodiscard]] std::vector<std::string> wrong() const;

  [[nodiscard]] std::size_t events() const { return events_; }
  // Every event of the application, in the order of arrival: ids with senders and times.
  [[nodiscard]] std::string trail(const std::string& uid) const;
  // Events whose id had arrived before.
  [[nodiscard]] std::size_t duplicates() const { return events_ - ids_.size(); }

 private:
  struct Order {
    std::uint64_t version = 0;  // the highest number: the deletion of one that nobody saw go
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
