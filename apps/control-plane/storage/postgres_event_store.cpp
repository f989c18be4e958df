#include "control-plane/storage/postgres_event_store.hpp"

#include <array>
#include <deque>

#include "common/store/postgres_connection.hpp"
#include "control-plane/storage/body_codec.hpp"
#include "control-plane/storage/event_statements.hpp"
#include "control-plane/storage/object_row.hpp"

namespace gitops::control_plane_server {
namespace {

using store::PostgresConnection;
using store::PostgresParam;
using store::Statement;

// Number of ids in one block of the sequence object_id.
constexpr std::int64_t kBlock = 1000;

enum At : std::size_t {
  begin,
  load_objects,
  load_reporters,
  load_identity,
  load_short_identity,
  next_block,
  put_objects,
  put_bodies,
  drop_labels,
  add_labels,
  add_timeline,
  put_releases,
  add_changes,
  put_reporters,
  touch_runtimes,
  commit,
  statement_count
};

constexpr std::string_view kSelectObjects = "SELECT k.at, o.id, ";
constexpr std::string_view kFromObjects =
    " FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], "
    "$7::text[], $8::text[], $9::text[]) WITH ORDINALITY AS k (account, runtime, origin, "
    "owner_uid, "
    "cluster, api_group, kind, namespace, name, at) JOIN object o ON o.account = k.account AND "
    "o.runtime = k.runtime AND o.origin = k.origin AND o.owner_uid = k.owner_uid AND "
    "o.cluster = k.cluster AND o.api_group = k.api_group AND o.kind = k.kind AND "
    "o.namespace = k.namespace AND o.name = k.name ORDER BY o.id FOR UPDATE OF o";
constexpr std::string_view kObjectArrays =
    ") SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], "
    "$6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], "
    "$13::bigint[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], "
    "$20::bigint[], $21::bigint[], $22::text[], $23::bigint[], $24::bigint[], $25::bigint[], "
    "$26::bigint[], $27::bigint[], $28::bigint[], $29::text[], $30::bytea[], $31::bytea[])";
constexpr std::string_view kBodyArrays =
    "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[])";
constexpr std::string_view kTimelineArrays =
    "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], "
    "$6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], "
    "$12::text[], $13::text[]) ON CONFLICT DO NOTHING";
constexpr std::string_view kReleaseArrays =
    "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], "
    "$6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], "
    "$12::bigint[], $13::bigint[], $14::text[], $15::text[], $16::bigint[])";
constexpr std::string_view kChangeArrays =
    "SELECT $1, c.no, c.account, c.kind, c.object, $6 FROM unnest($2::bigint[], $3::bigint[], "
    "$4::text[], $5::bigint[]) AS c (no, account, kind, object)";
constexpr std::string_view kReporterArrays =
    "SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], "
    "$6::text[], $7::bigint[])";

constexpr std::array<Statement, statement_count> kStatements{{
    {.name = "intake.begin", .sql = "BEGIN"},
    {.name = "intake.load", .sql = store::joined<kSelectObjects, kObjectColumnsOfO, kFromObjects>},
    {.name = "intake.load_reporters",
     .sql = "SELECT k.at, r.position, r.sequence, r.resync, r.seen_at FROM unnest($1::bigint[], "
            "$2::text[], $3::text[]) WITH ORDINALITY AS k (account, runtime, name, at) JOIN "
            "reporter r ON r.account = k.account AND r.runtime = k.runtime AND r.name = k.name "
            "ORDER BY k.at FOR UPDATE OF r"},
    // The timeline is another one after a promotion and a point-in-time recovery.
    {.name = "intake.load_identity",
     .sql =
         "SELECT coalesce((SELECT id || '/' || restores FROM instance), ''), s.system_identifier "
         "|| '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) FROM pg_control_system() s"},
    {.name = "intake.load_short_identity",
     .sql = "SELECT coalesce((SELECT id || '/' || restores FROM instance), ''), ''"},
    {.name = "intake.next_block", .sql = "SELECT nextval('object_id')"},
    {.name = "intake.put_objects",
     .sql = store::joined<kInsertObject, kObjectColumns, kObjectArrays, kUpdateObject>},
    {.name = "intake.put_bodies", .sql = store::joined<kInsertBody, kBodyArrays, kUpdateBody>},
    {.name = "intake.drop_labels", .sql = "DELETE FROM label WHERE object = ANY ($1::bigint[])"},
    {.name = "intake.add_labels",
     .sql = "INSERT INTO label (account, key, value, object) SELECT * FROM unnest($1::bigint[], "
            "$2::text[], $3::text[], $4::bigint[]) ON CONFLICT DO NOTHING"},
    {.name = "intake.add_timeline", .sql = store::joined<kInsertTimeline, kTimelineArrays>},
    {.name = "intake.put_releases",
     .sql = store::joined<kInsertRelease, kReleaseArrays, kMergeRelease>},
    {.name = "intake.add_changes", .sql = store::joined<kInsertChange, kChangeArrays>},
    {.name = "intake.put_reporters",
     .sql = store::joined<kInsertReporter, kReporterArrays, kUpdateReporter>},
    // At most once in ten seconds.
    {.name = "intake.touch_runtimes",
     .sql = "UPDATE runtime SET seen_at = s.seen_at FROM (SELECT account, name, max(seen_at) AS "
            "seen_at FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS t (account, name, "
            "seen_at) GROUP BY account, name) s WHERE runtime.account = s.account AND "
            "runtime.name = s.name AND runtime.seen_at + 10000000 <= s.seen_at"},
    {.name = "intake.commit", .sql = "COMMIT"},
}};

// The columns of several rows. Texts are borrowed from the rows.
class Columns {
 public:
  template <class Range, class Get>
  Columns& numbers(const Range& rows, const Get& get) {
    auto& column = numbers_.emplace_back();
    column.reserve(rows.size());
    for (const auto& row : rows) column.push_back(static_cast<std::int64_t>(get(row)));
    params_.emplace_back(store::ArrayParam(std::span<const std::int64_t>(column)));
    return *this;
  }
  template <class Range, class Get>
  Columns& texts(const Range& rows, const Get& get) {
    params_.emplace_back(store::ArrayParam(std::span<const std::string_view>(views(rows, get))));
    return *this;
  }
  template <class Range, class Get>
  Columns& bytes(const Range& rows, const Get& get) {
    params_.emplace_back(store::BytesArray{views(rows, get)});
    return *this;
  }
  Columns& add(store::Param param) {
    params_.emplace_back(param);
    return *this;
  }
  [[nodiscard]] std::vector<PostgresParam> params() const { return params_; }

 private:
  template <class Range, class Get>
  const std::vector<std::string_view>& views(const Range& rows, const Get& get) {
    auto& column = texts_.emplace_back();
    column.reserve(rows.size());
    for (const auto& row : rows) column.push_back(get(row));
    return column;
  }

  std::deque<std::vector<std::int64_t>> numbers_;
  std::deque<std::vector<std::string_view>> texts_;
  std::vector<PostgresParam> params_;
};

using Key = EventStore::AccountKey;
using Writes = EventStore::Writes;

// The steps of one pipeline. Owns the columns that its steps borrow.
class Pipeline {
 public:
  Columns& add(At at) {
    ats_.push_back(at);
    return columns_.emplace_back();
  }
  Result<std::vector<store::Rows>> run(PostgresConnection& connection) {
    std::vector<PostgresConnection::Step> steps;
    for (std::size_t i = 0; i < ats_.size(); ++i) {
      steps.push_back({&kStatements[ats_[i]], columns_[i].params()});
    }
    return connection.run_pipeline(steps);
  }

 private:
  std::vector<At> ats_;
  std::deque<Columns> columns_;
};

void add_objects(Pipeline& pipeline, const std::vector<Writes::State>& rows) {
  if (rows.empty()) return;
  using Row = Writes::State;
  pipeline.add(put_objects)
      .numbers(rows, [](const Row& r) { return r.state.id; })
      .numbers(rows, [](const Row& r) { return r.account; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.key.runtime; })
      .numbers(rows, [](const Row& r) { return r.state.key.origin; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.key.owner_uid; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.key.cluster; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.key.group; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.key.kind; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.key.object_namespace; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.key.name; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.version; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.uid; })
      .numbers(rows, [](const Row& r) { return r.state.sequence; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.event_id; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.manager.name; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.manager.application_namespace; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.manager.uid; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.destination; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.revision; })
      .numbers(rows, [](const Row& r) { return r.state.sync; })
      .numbers(rows, [](const Row& r) { return r.state.health; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.health_message; })
      .numbers(rows, [](const Row& r) { return r.state.phase; })
      .numbers(rows, [](const Row& r) { return r.state.history_id; })
      .numbers(rows, [](const Row& r) { return r.state.created_at; })
      .numbers(rows, [](const Row& r) { return r.state.changed_at; })
      .numbers(rows, [](const Row& r) { return r.state.seen_at; })
      .numbers(rows, [](const Row& r) { return r.state.presence; })
      .texts(rows, [](const Row& r) -> auto& { return r.state.entity; })
      .bytes(rows, [](const Row& r) -> auto& { return r.state.labels_digest; })
      .bytes(rows, [](const Row& r) -> auto& { return r.state.body_digest; });
}

void add_bodies(Pipeline& pipeline, const std::vector<Writes::Body>& rows) {
  if (rows.empty()) return;
  using Row = Writes::Body;
  pipeline.add(put_bodies)
      .numbers(rows, [](const Row& r) { return r.object; })
      .numbers(rows, [](const Row&) { return kBodyCodec; })
      .numbers(rows, [](const Row& r) { return r.size; })
      .bytes(rows, [](const Row& r) -> auto& { return r.packed; });
}

struct LabelRow {
  std::int64_t account;
  std::int64_t object;
  std::string_view key;
  std::string_view value;
};

void add_labels_of(Pipeline& pipeline, const std::vector<Writes::ObjectLabels>& objects) {
  if (objects.empty()) return;
  std::vector<LabelRow> rows;
  for (const auto& object : objects) {
    for (const auto& [key, value] : object.labels) {
      rows.push_back({object.account, object.object, key, value});
    }
  }
  pipeline.add(drop_labels).numbers(objects, [](const auto& r) { return r.object; });
  if (rows.empty()) return;
  pipeline.add(add_labels)
      .numbers(rows, [](const LabelRow& r) { return r.account; })
      .texts(rows, [](const LabelRow& r) { return r.key; })
      .texts(rows, [](const LabelRow& r) { return r.value; })
      .numbers(rows, [](const LabelRow& r) { return r.object; });
}

void add_timeline_of(Pipeline& pipeline, const std::vector<Writes::Timeline>& rows) {
  if (rows.empty()) return;
  using Row = Writes::Timeline;
  pipeline.add(add_timeline)
      .numbers(rows, [](const Row& r) { return r.object; })
      .numbers(rows, [](const Row& r) { return r.row.sequence; })
      .numbers(rows, [](const Row& r) { return r.account; })
      .numbers(rows, [](const Row& r) { return r.row.at; })
      .numbers(rows, [](const Row& r) { return r.row.step; })
      .texts(rows, [](const Row& r) -> auto& { return r.row.revision; })
      .numbers(rows, [](const Row& r) { return r.row.sync; })
      .numbers(rows, [](const Row& r) { return r.row.health; })
      .numbers(rows, [](const Row& r) { return r.row.phase; })
      .numbers(rows, [](const Row& r) { return r.row.commit_at; })
      .texts(rows, [](const Row& r) -> auto& { return r.row.author; })
      .texts(rows, [](const Row& r) -> auto& { return r.row.message; })
      .texts(rows, [](const Row& r) -> auto& { return r.row.event_id; });
}

void add_releases(Pipeline& pipeline, const std::vector<Writes::AppRelease>& rows) {
  if (rows.empty()) return;
  using Row = Writes::AppRelease;
  pipeline.add(put_releases)
      .numbers(rows, [](const Row& r) { return r.object; })
      .numbers(rows, [](const Row& r) { return r.release.history_id; })
      .numbers(rows, [](const Row& r) { return r.account; })
      .texts(rows, [](const Row& r) -> auto& { return r.release.revision; })
      .texts(rows, [](const Row& r) -> auto& { return r.release.operation_revision; })
      .texts(rows, [](const Row& r) -> auto& { return r.release.author; })
      .texts(rows, [](const Row& r) -> auto& { return r.release.message; })
      .numbers(rows, [](const Row& r) { return r.release.commit_at; })
      .numbers(rows, [](const Row& r) { return r.release.started_at; })
      .numbers(rows, [](const Row& r) { return r.release.finished_at; })
      .numbers(rows, [](const Row& r) { return r.release.sync; })
      .numbers(rows, [](const Row& r) { return r.release.health; })
      .numbers(rows, [](const Row& r) { return r.release.phase; })
      .texts(rows, [](const Row& r) -> auto& { return r.release.initiator; })
      .texts(rows, [](const Row& r) -> auto& { return r.release.images; })
      .numbers(rows, [](const Row& r) { return r.release.was_degraded; });
}

void add_reporters(Pipeline& pipeline, const std::vector<Writes::Reporter>& reporters) {
  if (reporters.empty()) return;
  using Reporter = Writes::Reporter;
  pipeline.add(put_reporters)
      .numbers(reporters, [](const Reporter& r) { return r.key.account; })
      .texts(reporters, [](const Reporter& r) -> auto& { return r.key.runtime; })
      .texts(reporters, [](const Reporter& r) -> auto& { return r.key.name; })
      .numbers(reporters, [](const Reporter& r) { return r.row.position; })
      .numbers(reporters, [](const Reporter& r) { return r.row.sequence; })
      .texts(reporters, [](const Reporter& r) -> auto& { return r.row.resync; })
      .numbers(reporters, [](const Reporter& r) { return r.row.seen_at; });
  pipeline.add(touch_runtimes)
      .numbers(reporters, [](const Reporter& r) { return r.key.account; })
      .texts(reporters, [](const Reporter& r) -> auto& { return r.key.runtime; })
      .numbers(reporters, [](const Reporter& r) { return r.row.seen_at; });
}

PostgresConnection& postgres(store::Connection& connection) {
  return dynamic_cast<PostgresConnection&>(connection);
}

}  // namespace

std::span<const Statement> postgres_event_statements() {
  return kStatements;
}

// Finds out which statement the server answers: one that does not tell its timeline, as a managed one may, tells only
// what our own tables have. Runs before the transaction, which an error would end.
Result<void> PostgresEventStore::find_identity(store::Connection& connection) {
  if (identity_ != nullptr) return {};
  const auto full = connection.run(kStatements[load_identity]);
  // Only a refusal decides. Processes that tell different epochs would ask every reporter for everything again and again.
  if (!full && full.error().code != ErrorCode::internal) return std::unexpected(full.error());
  identity_ = &kStatements[full ? load_identity : load_short_identity];
  return {};
}

Result<EventStore::Loaded> PostgresEventStore::load(store::Connection& connection,
                                                    std::span<const AccountKey> objects,
                                                    std::span<const ReporterKey> reporters) {
  if (auto found = find_identity(connection); !found) {
    return std::unexpected(std::move(found.error()));
  }
  using Reporter = ReporterKey;
  Pipeline pipeline;
  pipeline.add(begin);
  pipeline.add(load_objects)
      .numbers(objects, [](const Key& k) { return k.account; })
      .texts(objects, [](const Key& k) -> auto& { return k.key.runtime; })
      .numbers(objects, [](const Key& k) { return k.key.origin; })
      .texts(objects, [](const Key& k) -> auto& { return k.key.owner_uid; })
      .texts(objects, [](const Key& k) -> auto& { return k.key.cluster; })
      .texts(objects, [](const Key& k) -> auto& { return k.key.group; })
      .texts(objects, [](const Key& k) -> auto& { return k.key.kind; })
      .texts(objects, [](const Key& k) -> auto& { return k.key.object_namespace; })
      .texts(objects, [](const Key& k) -> auto& { return k.key.name; });
  if (!reporters.empty()) {
    pipeline.add(load_reporters)
        .numbers(reporters, [](const Reporter& r) { return r.account; })
        .texts(reporters, [](const Reporter& r) -> auto& { return r.runtime; })
        .texts(reporters, [](const Reporter& r) -> auto& { return r.name; });
    pipeline.add(static_cast<At>(identity_ - kStatements.data()));
  }
  auto results = pipeline.run(postgres(connection));
  if (!results) return std::unexpected(std::move(results.error()));
  Loaded loaded;
  const auto& rows = results->at(1);
  loaded.objects.resize(objects.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    loaded.objects.at(static_cast<std::size_t>(rows.number(row, 0) - 1)) =
        object_state(rows, row, 1);
  }
  if (reporters.empty()) return loaded;
  const auto& known = results->at(2);
  loaded.reporters.resize(reporters.size());
  for (std::size_t row = 0; row < known.size(); ++row) {
    loaded.reporters.at(static_cast<std::size_t>(known.number(row, 0) - 1)) =
        reporter_row(known, row, 1);
  }
  const auto& identity = results->at(3);
  loaded.epoch = epoch_of(identity.string(0, 0) + '/' + identity.string(0, 1));
  return loaded;
}

Result<std::int64_t> PostgresEventStore::take_ids(store::Connection& connection,
                                                  std::int64_t count) {
  const auto number = postgres(connection).number();
  if (ids_of_ != number || last_id_ - next_id_ + 1 < count) {
    // A batch has at most as many events as a block has ids.
    const auto rows = connection.run(kStatements[next_block]);
    if (!rows) return std::unexpected(rows.error());
    next_id_ = rows->number(0, 0);
    last_id_ = next_id_ + kBlock - 1;
    ids_of_ = number;
  }
  const auto first = next_id_;
  next_id_ += count;
  return first;
}

Result<void> PostgresEventStore::apply(store::Connection& connection, const Writes& writes) {
  Pipeline pipeline;
  add_objects(pipeline, writes.states);
  add_bodies(pipeline, writes.bodies);
  add_labels_of(pipeline, writes.labels);
  add_timeline_of(pipeline, writes.timeline);
  add_releases(pipeline, writes.releases);
  if (!writes.changes.empty()) {
    using Row = Writes::Change;
    const auto& rows = writes.changes;
    pipeline.add(add_changes)
        .add(instance())
        .numbers(rows, [](const Row& r) { return r.no; })
        .numbers(rows, [](const Row& r) { return r.account; })
        .texts(rows, [](const Row& r) -> auto& { return r.kind; })
        .numbers(rows, [](const Row& r) { return r.object; })
        .add(writes.now);
  }
  add_reporters(pipeline, writes.reporters);
  pipeline.add(commit);
  if (auto results = pipeline.run(postgres(connection)); !results) {
    return std::unexpected(std::move(results.error()));
  }
  return {};
}

}  // namespace gitops::control_plane_server
