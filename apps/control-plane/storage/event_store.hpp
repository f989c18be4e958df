#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "control-plane/projection/fold.hpp"
#include "control-plane/storage/reporter_row.hpp"

namespace gitops::control_plane_server {

// An event to store.
struct Incoming {
  std::int64_t account = 0;  // number of the account's row
  std::string reporter =
      {};  // X-Reporter, or the event's origin; names the row of the table `reporter`
  Event event = {};
  std::optional<IntakePosition> seen = {};  // X-Intake-Seen
};

// The heads of the answer to an event that tell its reporter about the database.
struct IntakeMark {
  std::string position;  // X-Intake-Position
  std::string resync;    // X-Intake-Resync; empty: not asked for

  bool operator==(const IntakeMark&) const = default;
};

// The outcome of a batch, event by event in the order of the batch.
struct BatchOutcome {
  struct Item {
    Outcome outcome = Outcome::stored;
    std::int64_t object = 0;
    bool is_visible = false;
    std::optional<IntakeMark> mark = {};  // in one batch a second for each reporter
  };
  std::vector<Item> items;
  std::int64_t last_change = 0;  // the highest number in the outbox so far; 0: there is none
};

// Stores batches of events, the hot path of the intake. Loads the states of a batch's objects for update, folds the
// events in order in memory (an object may occur more than once), and applies the final states, bodies, labels,
// timeline rows, releases and outbox rows in the same transaction. The two engines differ in how they load and apply.
// Runs on the writer's thread.
//
// An error rolls everything back, except for `unavailable` from the COMMIT, whose outcome is not known; the caller then
// stores the same batch again, which the check of sequences makes safe. `conflict` means that another replica inserted
// an object first; the caller then stores the batch again, which folds it again. The caller splits a batch that fails
// because of one event.
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
  struct ReporterKey {
    std::int64_t account = 0;
    std::string runtime;
    std::string name;
    auto operator<=>(const ReporterKey&) const = default;
  };
  // Moves the row of a reporter without an event on, and returns its mark. Errors are those of store().
  Result<IntakeMark> touch(store::Connection& connection, const ReporterKey& reporter,
                           const ReporterContact& contact);

  // The rows of a batch before it. The present epoch of the database is loaded together with reporters.
  struct Loaded {
    std::vector<std::optional<ObjectState>> objects;    // in the order of the keys
    std::vector<std::optional<ReporterRow>> reporters;  // likewise
    std::string epoch;
  };
  // The part of an object's row that a batch changes. A part includes those before it.
  enum class RowChange : std::uint8_t {
    none,
    values,    // columns without an index
    states,    // the states of lists, in one index
    identity,  // uid and manager, in others; also of a new row
  };
  // The rows to write for a batch: at most one for each object and table, except for the timeline.
  struct Writes {
    struct State {
      std::int64_t account;
      ObjectState state;
      RowChange change;
    };
    struct Body {
      std::int64_t object;
      std::string packed;
      std::size_t size;  // unpacked, in bytes
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
      ReporterKey key;
      ReporterRow row;
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

  // Begins a transaction and returns the rows of these keys, locked.
  virtual Result<Loaded> load(store::Connection& connection, std::span<const AccountKey> objects,
                              std::span<const ReporterKey> reporters) = 0;
  // Writes everything and commits.
  virtual Result<void> apply(store::Connection& connection, const Writes& writes) = 0;
  // Returns the first of `count` unused ids.
  virtual Result<std::int64_t> take_ids(store::Connection& connection, std::int64_t count) = 0;

 private:
  Result<void> reload_last_change(store::Connection& connection);
  [[nodiscard]] std::vector<ReporterKey> due_reporters(std::span<const Incoming> batch) const;
  void note_written(const std::vector<Writes::Reporter>& reporters);

  std::string instance_ = {};
  std::int64_t last_change_ = 0;
  bool is_change_known_ = true;  // false after a batch that failed
  // The times of the rows of reporters that were written last.
  std::map<ReporterKey, Micros> written_reporters_;
};

// Makes the store of an engine. `instance` names this process in the outbox and is different after each start.
std::unique_ptr<EventStore> make_event_store(store::Engine engine, std::string instance);

}  // namespace gitops::control_plane_server
