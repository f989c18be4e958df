#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "control-plane/projection/fold.hpp"

namespace gitops::control_plane_server {

// One event on its way into the store.
struct Incoming {
  std::int64_t account = 0;  // number of the account's row
  std::string reporter =
      {};  // X-Reporter, or the event's origin; names the row of the table `reporter`
  Event event = {};
};

// What one batch wrote, event by event in the order of the batch.
struct BatchOutcome {
  struct Item {
    Outcome outcome = Outcome::stored;
    std::int64_t object = 0;
    bool is_visible = false;
  };
  std::vector<Item> items;
  std::int64_t last_change = 0;  // the highest number in the outbox so far; 0: there is none
};

// The hot path of the intake: loads the states of a batch's objects for update, folds the events in order in memory (an
// object may occur more than once), and applies the final states, bodies, labels, timeline rows, releases and outbox
// rows in the same transaction. Two engines, which differ in how they load and apply. Runs on the writer's thread.
//
// An error leaves nothing behind, except for `unavailable` from the COMMIT, whose outcome is not known: storing the same
// batch again is then right, and the guard of the sequence makes it harmless. After `conflict` another replica was first
// with an object: storing the batch again folds it again. A batch that fails because of one event is split by the caller.
class EventStore {
 public:
  virtual ~EventStore() = default;
  EventStore(const EventStore&) = delete;
  EventStore& operator=(const EventStore&) = delete;

  Result<BatchOutcome> store(store::Connection& connection, std::span<const Incoming> batch);

  struct AccountKey {
    std::int64_t account = 0;
    ObjectKey key;
    auto operator<=>(const AccountKey&) const = default;
  };
  // What is written for a batch: at most one row for each object and table, but for the timeline.
  struct Writes {
    struct State {
      std::int64_t account;
      ObjectState state;
    };
    struct Body {
      std::int64_t object;
      std::string packed;
      std::size_t size;  // unpacked
    };
    struct ObjectLabels {
      std::int64_t account;
      std::int64_t object;
      Labels labels;
    };
    struct Timeline {
      std::int64_t account;
      std::int64_t object;
      TimelineRow row;
    };
    struct AppRelease {
      std::int64_t account;
      std::int64_t object;
      Release release;
    };
    struct Change {
      std::int64_t no;
      std::int64_t account;
      std::int64_t object;
      std::string kind;
    };
    struct Reporter {
      std::int64_t account;
      std::string runtime;
      std::string name;
      std::int64_t sequence;
      Micros seen_at;
    };
    std::vector<State> states;
    std::vector<Body> bodies;
    std::vector<ObjectLabels> labels;
    std::vector<Timeline> timeline;
    std::vector<AppRelease> releases;
    std::vector<Change> changes;
    std::vector<Reporter> reporters;
    Micros now = 0;  // of the outbox
  };

 protected:
  explicit EventStore(std::string instance) : instance_(std::move(instance)) {}
  [[nodiscard]] const std::string& instance() const { return instance_; }

  // Begins a transaction and returns the states of these keys, locked, in the order of the keys.
  virtual Result<std::vector<std::optional<ObjectState>>> load(
      store::Connection& connection, std::span<const AccountKey> keys) = 0;
  // Writes everything and commits.
  virtual Result<void> apply(store::Connection& connection, const Writes& writes) = 0;
  // The first of `count` ids that no object has.
  virtual Result<std::int64_t> take_ids(store::Connection& connection, std::int64_t count) = 0;

 private:
  std::string instance_ = {};
  std::int64_t last_change_ = 0;
};

// `instance` names this process in the outbox; another start has another name.
std::unique_ptr<EventStore> make_event_store(store::Engine engine, std::string instance);

}  // namespace gitops::control_plane_server
