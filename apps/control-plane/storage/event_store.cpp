#include "control-plane/storage/event_store.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "control-plane/storage/body_codec.hpp"
#include "control-plane/storage/postgres_event_store.hpp"
#include "control-plane/storage/sqlite_event_store.hpp"

namespace gitops::control_plane_server {
namespace {

using AccountKey = EventStore::AccountKey;
using Writes = EventStore::Writes;
using RowChange = EventStore::RowChange;

using ReporterKey = EventStore::ReporterKey;

constexpr Micros kReporterPeriod = 1'000'000;   // between two writes of a reporter's row
constexpr std::size_t kMaxReporters = 100'000;  // whose times are remembered

// Returns the part of the row that differs. `before` is absent for an object without a row.
RowChange change_of(const std::optional<ObjectState>& before, const ObjectState& after) {
  if (!before || before->uid != after.uid || before->manager != after.manager) {
    return RowChange::identity;
  }
  const bool is_listed = before->sync != after.sync || before->health != after.health ||
                         before->phase != after.phase || before->presence != after.presence ||
                         before->entity != after.entity;
  return is_listed ? RowChange::states : RowChange::values;
}

constexpr store::Statement kLastChange{.name = "intake.last_change",
                                       .sql = "SELECT max(no) FROM change WHERE instance = $1"};

// The states of a batch's objects while its events are folded, and the outcome for each object.
class Folding {
 public:
  explicit Folding(std::span<const Incoming> batch) {
    for (const auto& incoming : batch) {
      objects_.try_emplace({incoming.account, incoming.event.state.key});
    }
    for (const auto& [key, object] : objects_) keys_.push_back(key);
  }

  // Returns the keys in order, without duplicates.
  [[nodiscard]] std::span<const AccountKey> keys() const { return keys_; }

  void set_loaded(std::vector<std::optional<ObjectState>> states) {
    auto state = states.begin();
    for (auto& [key, object] : objects_) object.state = std::move(*state++);
  }

  // Returns the number of objects without a row. They get their ids before the events are folded.
  [[nodiscard]] std::int64_t new_objects() const {
    return std::ranges::count_if(objects_, [](const auto& entry) { return !entry.second.state; });
  }
  void set_first_new_id(std::int64_t id) {
    for (auto& [key, object] : objects_) {
      object.id = object.state ? object.state->id : id++;
    }
  }

  BatchOutcome::Item take(const Incoming& incoming, Writes& writes) {
    auto& object = objects_.at({incoming.account, incoming.event.state.key});
    auto effects = fold(object.state, incoming.event);
    effects.state.id = object.id;
    if (effects.outcome != Outcome::stale) {
      object.change = std::max(object.change, change_of(object.state, effects.state));
    }
    object.state = std::move(effects.state);
    object.is_visible = object.is_visible || effects.is_visible;
    if (effects.body) object.body = std::move(effects.body);
    if (effects.labels) object.labels = std::move(effects.labels);
    if (effects.timeline) {
      writes.timeline.push_back({incoming.account, object.id, std::move(*effects.timeline)});
    }
    if (effects.release) {
      auto& known = object.releases[effects.release->history_id];
      known = known ? merge(*known, *effects.release) : std::move(*effects.release);
    }
    return {.outcome = effects.outcome, .object = object.id, .is_visible = effects.is_visible};
  }

  void write(Writes& writes, std::int64_t& last_change) {
    for (auto& [key, object] : objects_) {
      if (object.is_visible) {
        writes.changes.push_back({++last_change, key.account, object.id, key.key.kind});
      }
      if (object.body) {
        auto packed = pack_body(*object.body);
        writes.bodies.push_back({object.id, std::move(packed.bytes), packed.size});
      }
      if (object.labels) {
        writes.labels.push_back({key.account, object.id, std::move(*object.labels)});
      }
      for (auto& [id, release] : object.releases) {
        writes.releases.push_back({key.account, object.id, std::move(*release)});
      }
      if (object.change == RowChange::none) continue;
      writes.states.push_back({key.account, std::move(*object.state), object.change});
    }
    // Every replica locks rows in this order.
    std::ranges::sort(writes.states, {}, [](const Writes::State& row) { return row.state.id; });
  }

 private:
  struct Object {
    std::optional<ObjectState> state;
    std::int64_t id = 0;
    RowChange change = RowChange::none;
    bool is_visible = false;
    std::optional<ObjectBody> body;
    std::optional<Labels> labels;
    std::map<std::int64_t, std::optional<Release>> releases;
  };
  std::map<AccountKey, Object> objects_;
  std::vector<AccountKey> keys_;
};

ReporterKey reporter_of(const Incoming& incoming) {
  return {.account = incoming.account,
          .runtime = incoming.event.state.key.runtime,
          .name = incoming.reporter};
}

// Moves the rows of these reporters on, and marks their events in the batch.
void advance_reporters(std::span<const Incoming> batch, std::span<const ReporterKey> keys,
                       const EventStore::Loaded& loaded, Writes& writes, BatchOutcome& outcome) {
  if (keys.empty()) return;
  std::map<ReporterKey, ReporterContact> contacts;
  for (const auto& incoming : batch) {
    const auto& state = incoming.event.state;
    const ReporterContact contact{
        .seen = incoming.seen, .sequence = state.sequence, .at = state.seen_at};
    auto& all = contacts[reporter_of(incoming)];
    all = joined(all, contact, loaded.epoch);
  }
  std::map<ReporterKey, IntakeMark> marks;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto row = advanced(loaded.reporters[i], contacts.at(keys[i]), loaded.epoch);
    marks[keys[i]] = {to_string(IntakePosition{loaded.epoch, row.position}), row.resync};
    writes.reporters.push_back({keys[i], std::move(row)});
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto mark = marks.find(reporter_of(batch[i]));
    if (mark != marks.end()) outcome.items[i].mark = mark->second;
  }
}

}  // namespace

Result<BatchOutcome> EventStore::store(store::Connection& connection,
                                       std::span<const Incoming> batch) {
  // An error ends the transaction or the connection.
  const auto abandon = [&connection](Error error) {
    if (auto ended = connection.run_script("ROLLBACK"); !ended && error.message.empty()) {
      error = std::move(ended.error());
    }
    return std::unexpected(std::move(error));
  };
  Folding folding(batch);
  const auto reporters = due_reporters(batch);
  auto loaded = load(connection, folding.keys(), reporters);
  if (!loaded) return abandon(std::move(loaded.error()));
  folding.set_loaded(std::move(loaded->objects));
  if (!is_change_known_) {
    if (auto loaded_change = reload_last_change(connection); !loaded_change) {
      return abandon(std::move(loaded_change.error()));
    }
  }
  if (const auto count = folding.new_objects(); count > 0) {
    const auto first = take_ids(connection, count);
    if (!first) return abandon(first.error());
    folding.set_first_new_id(*first);
  } else {
    folding.set_first_new_id(0);
  }
  Writes writes;
  BatchOutcome outcome;
  for (const auto& incoming : batch) {
    outcome.items.push_back(folding.take(incoming, writes));
    writes.now = std::max(writes.now, incoming.event.state.seen_at);
  }
  auto last_change = last_change_;
  folding.write(writes, last_change);
  advance_reporters(batch, reporters, *loaded, writes, outcome);
  is_change_known_ = false;  // also when an exception comes after the COMMIT
  if (auto applied = apply(connection, writes); !applied) {
    return abandon(std::move(applied.error()));
  }
  last_change_ = last_change;
  is_change_known_ = true;
  note_written(writes.reporters);
  outcome.last_change = last_change;
  return outcome;
}

Result<IntakeMark> EventStore::touch(store::Connection& connection, const ReporterKey& reporter,
                                     const ReporterContact& contact) {
  const auto abandon = [&connection](Error error) {
    std::ignore = connection.run_script("ROLLBACK");
    return std::unexpected(std::move(error));
  };
  auto loaded = load(connection, {}, std::span(&reporter, 1));
  if (!loaded) return abandon(std::move(loaded.error()));
  auto row = advanced(loaded->reporters.front(), contact, loaded->epoch);
  IntakeMark mark{.position = to_string(IntakePosition{loaded->epoch, row.position}),
                  .resync = row.resync};
  Writes writes;
  writes.now = contact.at;
  writes.reporters.push_back({reporter, std::move(row)});
  if (auto applied = apply(connection, writes); !applied) {
    return abandon(std::move(applied.error()));
  }
  note_written(writes.reporters);
  return mark;
}

// Numbers that a COMMIT with an unknown outcome may have used would conflict with those of every later batch.
Result<void> EventStore::reload_last_change(store::Connection& connection) {
  const auto rows = connection.run(kLastChange, {instance_});
  if (!rows) return std::unexpected(rows.error());
  last_change_ = std::max(last_change_, rows->number(0, 0));  // 0 for NULL: there is none
  is_change_known_ = true;
  return {};
}

// Returns the reporters of a batch, in order, whose rows were not written within the last second.
std::vector<ReporterKey> EventStore::due_reporters(std::span<const Incoming> batch) const {
  std::map<ReporterKey, Micros> found;
  for (const auto& incoming : batch) {
    auto& at = found[reporter_of(incoming)];
    at = std::max(at, incoming.event.state.seen_at);
  }
  std::vector<ReporterKey> due;
  for (const auto& [key, at] : found) {
    const auto written = written_reporters_.find(key);
    if (written != written_reporters_.end() && at < written->second + kReporterPeriod) continue;
    due.push_back(key);
  }
  return due;
}

void EventStore::note_written(const std::vector<Writes::Reporter>& reporters) {
  if (written_reporters_.size() > kMaxReporters) written_reporters_.clear();
  for (const auto& reporter : reporters) written_reporters_[reporter.key] = reporter.row.seen_at;
}

std::unique_ptr<EventStore> make_event_store(store::Engine engine, std::string instance) {
  if (engine == store::Engine::sqlite) {
    return std::make_unique<SqliteEventStore>(std::move(instance));
  }
  return std::make_unique<PostgresEventStore>(std::move(instance));
}

}  // namespace gitops::control_plane_server
