#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/fake_platform.hpp"

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

// What applications there are, next to what a receiver makes of the events that it got. The
// receiver drops ids that it has seen, and what is older than what it has: by resourceVersion of
// the application, then by the time the event was made. Applications are told apart by uid. Pure.
class HistoryModel {
 public:
  // -- the truth --
  struct App {
    std::string name;
    AppTruth state;
    std::map<std::string, ResourceTruth> resources;  // by name
  };
  // A new application; the reference holds until it is removed.
  App& add(const std::string& uid, std::string name);
  [[nodiscard]] App& app(const std::string& uid) { return live_.at(uid); }
  void remove(const std::string& uid) { live_.erase(uid); }

  // -- the receiver --
  // Each event once, in the order of arrival.
  void receive(const FakePlatform::Report& report);

  // Where the receiver is not where the truth is, one line each: a missing or outdated state, a
  // deletion that it does not know of. Empty when nothing was lost.
  [[nodiscard]] std::vector<std::string> lost() const;
  // Events that must not be, whatever was lost: of unknown applications, without an id, made from
  // an older state of the application than one made before.
  [[nodiscard]] std::vector<std::string> wrong() const;

  [[nodiscard]] std::size_t events() const { return events_; }
  // Every event of the application, in the order of arrival: ids with the times they were made.
  [[nodiscard]] std::string trail(const std::string& uid) const;
  // Events whose id had arrived before.
  [[nodiscard]] std::size_t duplicates() const { return events_ - ids_.size(); }

 private:
  struct Order {
    std::uint64_t version = 0;  // the highest number: the deletion of one that nobody saw go
    std::string made;           // RFC 3339
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
    std::vector<std::pair<std::string, std::uint64_t>> made;  // time and version of each event
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
