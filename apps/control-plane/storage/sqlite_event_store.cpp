#include "control-plane/storage/sqlite_event_store.hpp"

#include <array>

#include "control-plane/storage/body_codec.hpp"
#include "control-plane/storage/event_statements.hpp"
#include "control-plane/storage/object_row.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Param;
using store::Statement;

enum At : std::size_t {
  load_object,
  load_reporter,
  load_identity,
  last_id,
  put_object,
  update_states,
  update_values,
  put_body,
  drop_labels,
  add_label,
  add_timeline,
  put_release,
  add_change,
  put_reporter,
  touch_runtime,
  statement_count
};

constexpr std::string_view kSelectObject = "SELECT id, ";
constexpr std::string_view kFromObject =
    " FROM object WHERE account = $1 AND runtime = $2 AND origin = $3 AND owner_uid = $4 AND "
    "cluster = $5 AND api_group = $6 AND kind = $7 AND namespace = $8 AND name = $9";
constexpr std::string_view kObjectValues =
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, "
    "$19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31)";
// SQLite writes an entry of an index again whenever a statement sets one of its columns, also to the same value.
constexpr std::string_view kSetValues =
    "UPDATE object SET version = $2, sequence = $3, event_id = $4, destination = $5, "
    "revision = $6, health_message = $7, history_id = $8, created_at = $9, changed_at = $10, "
    "seen_at = $11, labels_digest = $12, body_digest = $13";
constexpr std::string_view kSetStates =
    ", sync = $14, health = $15, phase = $16, presence = $17, entity = $18";
constexpr std::string_view kOfId = " WHERE id = $1";
constexpr std::string_view kBodyValues = "VALUES ($1, $2, $3, $4)";
constexpr std::string_view kTimelineValues =
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT DO NOTHING";
constexpr std::string_view kReleaseValues =
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
constexpr std::string_view kChangeValues = "VALUES ($1, $2, $3, $4, $5, $6)";
constexpr std::string_view kReporterValues = "VALUES ($1, $2, $3, $4, $5, $6, $7)";

constexpr std::array<Statement, statement_count> kStatements{{
    {.name = "intake.load", .sql = store::joined<kSelectObject, kObjectColumns, kFromObject>},
    {.name = "intake.load_reporter",
     .sql = "SELECT position, sequence, resync, seen_at FROM reporter WHERE account = $1 AND "
            "runtime = $2 AND name = $3"},
    {.name = "intake.load_identity", .sql = "SELECT id, restores FROM instance"},
    {.name = "intake.last_id", .sql = "SELECT coalesce(max(id), 0) FROM object"},
    {.name = "intake.put_object",
     .sql = store::joined<kInsertObject, kObjectColumns, kObjectValues, kUpdateObject>},
    {.name = "intake.update_states", .sql = store::joined<kSetValues, kSetStates, kOfId>},
    {.name = "intake.update_values", .sql = store::joined<kSetValues, kOfId>},
    {.name = "intake.put_body", .sql = store::joined<kInsertBody, kBodyValues, kUpdateBody>},
    {.name = "intake.drop_labels", .sql = "DELETE FROM label WHERE object = $1"},
    {.name = "intake.add_label",
     .sql = "INSERT INTO label (account, key, value, object) VALUES ($1, $2, $3, $4) "
            "ON CONFLICT DO NOTHING"},
    {.name = "intake.add_timeline", .sql = store::joined<kInsertTimeline, kTimelineValues>},
    {.name = "intake.put_release",
     .sql = store::joined<kInsertRelease, kReleaseValues, kMergeRelease>},
    {.name = "intake.add_change", .sql = store::joined<kInsertChange, kChangeValues>},
    {.name = "intake.put_reporter",
     .sql = store::joined<kInsertReporter, kReporterValues, kUpdateReporter>},
    // At most once in ten seconds.
    {.name = "intake.touch_runtime",
     .sql = "UPDATE runtime SET seen_at = $3 WHERE account = $1 AND name = $2 AND "
            "seen_at + 10000000 <= $3"},
}};

store::Params state_params(std::int64_t account, const ObjectState& state) {
  const auto& key = state.key;
  return {state.id,
          account,
          key.runtime,
          static_cast<int>(key.origin),
          key.owner_uid,
          key.cluster,
          key.group,
          key.kind,
          key.object_namespace,
          key.name,
          state.version,
          state.uid,
          state.sequence,
          state.event_id,
          state.manager.name,
          state.manager.application_namespace,
          state.manager.uid,
          state.destination,
          state.revision,
          static_cast<int>(state.sync),
          static_cast<int>(state.health),
          state.health_message,
          static_cast<int>(state.phase),
          state.history_id,
          state.created_at,
          state.changed_at,
          state.seen_at,
          static_cast<int>(state.presence),
          state.entity,
          Param::bytes(state.labels_digest),
          Param::bytes(state.body_digest)};
}

store::Params value_params(const ObjectState& state) {
  return {state.id,
          state.version,
          state.sequence,
          state.event_id,
          state.destination,
          state.revision,
          state.health_message,
          state.history_id,
          state.created_at,
          state.changed_at,
          state.seen_at,
          Param::bytes(state.labels_digest),
          Param::bytes(state.body_digest)};
}

store::Params timeline_params(const EventStore::Writes::Timeline& row) {
  const auto& step = row.row;
  return {row.object,
          step.sequence,
          row.account,
          step.at,
          static_cast<int>(step.step),
          step.revision,
          static_cast<int>(step.sync),
          static_cast<int>(step.health),
          static_cast<int>(step.phase),
          step.commit_at,
          step.author,
          step.message,
          step.event_id};
}

store::Params release_params(const EventStore::Writes::AppRelease& row) {
  const auto& release = row.release;
  return {row.object,
          release.history_id,
          row.account,
          release.revision,
          release.operation_revision,
          release.author,
          release.message,
          release.commit_at,
          release.started_at,
          release.finished_at,
          static_cast<int>(release.sync),
          static_cast<int>(release.health),
          static_cast<int>(release.phase),
          release.initiator,
          release.images,
          static_cast<int>(release.was_degraded)};
}

// Runs statements until one fails.
class Script {
 public:
  explicit Script(store::Connection& connection) : connection_(connection) {}
  void run(At at, const store::Params& params) {
    if (!outcome_) return;
    if (auto ran = connection_.run(kStatements[at], params); !ran) {
      outcome_ = std::unexpected(std::move(ran.error()));
    }
  }
  [[nodiscard]] const Result<void>& outcome() const { return outcome_; }

 private:
  store::Connection& connection_;
  Result<void> outcome_;
};

void put_state(Script& script, const EventStore::Writes::State& row) {
  if (row.change == EventStore::RowChange::identity) {
    script.run(put_object, state_params(row.account, row.state));
    return;
  }
  const auto& state = row.state;
  auto params = value_params(state);
  if (row.change == EventStore::RowChange::values) {
    script.run(update_values, params);
    return;
  }
  for (const auto number : {static_cast<int>(state.sync), static_cast<int>(state.health),
                            static_cast<int>(state.phase), static_cast<int>(state.presence)}) {
    params.emplace_back(number);
  }
  params.emplace_back(state.entity);
  script.run(update_states, params);
}

}  // namespace

std::span<const Statement> sqlite_event_statements() {
  return kStatements;
}

Result<EventStore::Loaded> SqliteEventStore::load(store::Connection& connection,
                                                  std::span<const AccountKey> objects,
                                                  std::span<const ReporterKey> reporters) {
  if (auto begun = connection.run_script("BEGIN IMMEDIATE"); !begun) {
    return std::unexpected(std::move(begun.error()));
  }
  Loaded loaded;
  loaded.objects.reserve(objects.size());
  for (const auto& [account, key] : objects) {
    const auto rows =
        connection.run(kStatements[load_object],
                       {account, key.runtime, static_cast<int>(key.origin), key.owner_uid,
                        key.cluster, key.group, key.kind, key.object_namespace, key.name});
    if (!rows) return std::unexpected(rows.error());
    auto& state = loaded.objects.emplace_back();
    if (!rows->empty()) state = object_state(*rows, 0);
  }
  if (reporters.empty()) return loaded;
  for (const auto& [account, runtime, name] : reporters) {
    const auto rows = connection.run(kStatements[load_reporter], {account, runtime, name});
    if (!rows) return std::unexpected(rows.error());
    auto& row = loaded.reporters.emplace_back();
    if (!rows->empty()) row = reporter_row(*rows, 0);
  }
  const auto identity = connection.run(kStatements[load_identity]);
  if (!identity) return std::unexpected(identity.error());
  loaded.epoch = epoch_of(identity->empty() ? std::string()
                                            : identity->string(0, 0) + '/' +
                                                  std::to_string(identity->number(0, 1)));
  return loaded;
}

Result<std::int64_t> SqliteEventStore::take_ids(store::Connection& connection, std::int64_t count) {
  if (next_id_ == 0) {
    const auto rows = connection.run(kStatements[last_id]);
    if (!rows) return std::unexpected(rows.error());
    next_id_ = rows->number(0, 0) + 1;
  }
  const auto first = next_id_;
  next_id_ += count;
  return first;
}

Result<void> SqliteEventStore::apply(store::Connection& connection, const Writes& writes) {
  Script script(connection);
  for (const auto& row : writes.states) put_state(script, row);
  for (const auto& body : writes.bodies) {
    script.run(put_body,
               {body.object, static_cast<int>(kBodyCodec), body.size, Param::bytes(body.packed)});
  }
  for (const auto& labels : writes.labels) {
    script.run(drop_labels, {labels.object});
    for (const auto& [key, value] : labels.labels) {
      script.run(add_label, {labels.account, key, value, labels.object});
    }
  }
  for (const auto& row : writes.timeline) script.run(add_timeline, timeline_params(row));
  for (const auto& row : writes.releases) script.run(put_release, release_params(row));
  for (const auto& change : writes.changes) {
    script.run(add_change,
               {instance(), change.no, change.account, change.kind, change.object, writes.now});
  }
  for (const auto& [key, row] : writes.reporters) {
    script.run(put_reporter, {key.account, key.runtime, key.name, row.position, row.sequence,
                              row.resync, row.seen_at});
    script.run(touch_runtime, {key.account, key.runtime, row.seen_at});
  }
  if (!script.outcome()) return script.outcome();
  return connection.run_script("COMMIT");
}

}  // namespace gitops::control_plane_server
