#pragma once

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
  Event event;
};

// What one batch wrote, event by event in the order of the batch.
struct BatchOutcome {
  struct Item {
    Outcome outcome = Outcome::stored;
    std::int64_t object = 0;
    bool is_visible = false;
  };
  std::vector<Item> items;
  std::int64_t last_change = 0;  // the highest number of the outbox; 0: nothing visible changed
};

// The hot path of the intake on one engine: loads the states of a batch's objects for update, folds the events in order
// in memory (an object may occur more than once), applies the final states, bodies, labels, timeline rows, releases and
// outbox rows, and commits. Runs on the writer's thread.
//
// An error leaves nothing behind, except for `unavailable` after a COMMIT was sent, whose outcome is not known: folding
// the same batch again is then right, and the guard of the sequence makes it harmless. A batch that fails because of one
// event is split by the caller.
class EventStore {
 public:
  virtual ~EventStore() = default;
  EventStore(const EventStore&) = delete;
  EventStore& operator=(const EventStore&) = delete;
  virtual Result<BatchOutcome> store(store::Connection& connection,
                                     std::span<const Incoming> batch) = 0;

 protected:
  EventStore() = default;
};
// `instance` names this process in the outbox.
std::unique_ptr<EventStore> make_event_store(store::Engine engine, std::string instance);

// The text of a body: reads and unpacks the row of the table `body`. Not found: it was never stored.
Result<ObjectBody> read_body(store::Connection& connection, std::int64_t account,
                             std::int64_t object);

}  // namespace gitops::control_plane_server
