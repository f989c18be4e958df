#include "control-plane/storage/retention.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "control-plane/storage/report_request_store.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Statement;

// A row of the timeline with its entries in two indexes.
constexpr std::int64_t kTimelineRowBytes = 200;
// Rows of the outbox for one of other tables. It has one for each visible change, all of which are
// due within minutes.
constexpr std::int64_t kOutboxShare = 20;
constexpr std::int64_t kWarningPercent = 80;
constexpr std::int64_t kEnoughPercent = 85;
constexpr std::int64_t kTrimmingPercent = 90;
constexpr std::int64_t kFullPercent = 97;

constexpr Statement kAccounts{.name = "retention.accounts",
                              .sql = "SELECT number FROM account ORDER BY number"};
constexpr Statement kSessions{
    .name = "retention.sessions",
    .sql =
        "DELETE FROM session WHERE hash IN (SELECT hash FROM session WHERE expires_at <= $1 "
        "ORDER BY expires_at LIMIT $2)"};
constexpr Statement kPageTokens{
    .name = "retention.page_tokens",
    .sql =
        "DELETE FROM page_token WHERE hash IN (SELECT hash FROM page_token WHERE expires_at <= $1 "
        "ORDER BY expires_at LIMIT $2)"};
constexpr Statement kChanges{
    .name = "retention.changes",
    .sql =
        "DELETE FROM change WHERE (instance, no) IN (SELECT instance, no FROM change WHERE "
        "at < $1 LIMIT $2)"};
constexpr Statement kQuarantine{
    .name = "retention.quarantine",
    .sql =
        "DELETE FROM quarantine WHERE (account, at, no) IN (SELECT account, at, no FROM quarantine "
        "WHERE account = $1 AND at < $2 ORDER BY at LIMIT $3)"};
constexpr Statement kPayloads{
    .name = "retention.event_payloads",
    .sql =
        "DELETE FROM event_payload WHERE (account, runtime, source, id) IN (SELECT account, "
        "runtime, source, id FROM event_payload WHERE account = $1 AND at < $2 ORDER BY at "
        "LIMIT $3)"};
constexpr Statement kSourceErrors{
    .name = "retention.source_errors",
    .sql =
        "DELETE FROM source_error WHERE (account, runtime, api_group, kind, namespace, name) IN "
        "(SELECT account, runtime, api_group, kind, namespace, name FROM source_error WHERE "
        "account = $1 AND at < $2 ORDER BY at LIMIT $3)"};
constexpr Statement kAudit{
    .name = "retention.audit",
    .sql =
        "DELETE FROM audit WHERE (account, at, no) IN (SELECT account, at, no FROM audit "
        "WHERE account = $1 AND at < $2 ORDER BY at LIMIT $3)"};
constexpr Statement kReportRequests{
    .name = "retention.report_requests",
    .sql =
        "DELETE FROM report_request WHERE (account, runtime, uid) IN (SELECT account, runtime, uid "
        "FROM report_request WHERE account = $1 AND number < $2 ORDER BY number LIMIT $3)"};
constexpr Statement kTimeline{
    .name = "retention.timeline",
    .sql =
        "DELETE FROM timeline WHERE (object, sequence) IN (SELECT object, sequence FROM timeline "
        "WHERE account = $1 AND at < $2 ORDER BY at LIMIT $3)"};
constexpr Statement kReleases{
    .name = "retention.releases",
    .sql =
        "DELETE FROM app_release WHERE (object, history_id) IN (SELECT r.object, r.history_id "
        "FROM app_release r WHERE r.account = $1 AND r.started_at > 0 AND r.started_at < $2 AND "
        "r.history_id <> (SELECT o.history_id FROM object o WHERE o.id = r.object) "
        "ORDER BY r.started_at LIMIT $3)"};
// The kinds of an account one after another, each found by the index of lists.
constexpr Statement kNextKind{
    .name = "retention.next_kind",
    .sql = "SELECT kind FROM object WHERE account = $1 AND kind > $2 ORDER BY kind LIMIT 1"};
// Locked, as a batch of events locks them: one that another replica is bringing back is passed over. Otherwise its new
// body would go with the old one.
constexpr Statement kGone{
    .name = "retention.gone",
    .sql =
        "SELECT id FROM object WHERE account = $1 AND kind = $2 AND presence = 1 AND seen_at < $3 "
        "LIMIT $4",
    .postgres =
        "SELECT id FROM object WHERE account = $1 AND kind = $2 AND presence = 1 AND seen_at < $3 "
        "LIMIT $4 FOR UPDATE SKIP LOCKED"};
// Statements by the ids of objects, so that no index of an account is scanned.
constexpr std::array<Statement, 5> kRemoveObject{
    {{.name = "retention.remove_body",
      .sql = "DELETE FROM body WHERE object IN (SELECT id FROM object WHERE account = $1 AND "
             "id = $2)"},
     {.name = "retention.remove_labels",
      .sql = "DELETE FROM label WHERE object IN (SELECT id FROM object WHERE account = $1 AND "
             "id = $2)"},
     {.name = "retention.remove_timeline",
      .sql = "DELETE FROM timeline WHERE object IN (SELECT id FROM object WHERE account = $1 AND "
             "id = $2)"},
     {.name = "retention.remove_releases",
      .sql = "DELETE FROM app_release WHERE object IN (SELECT id FROM object WHERE account = $1 "
             "AND id = $2)"},
     {.name = "retention.remove_object",
      .sql = "DELETE FROM object WHERE account = $1 AND id = $2"}}};
// The runtimes of an account's objects one after another, each found by the index of keys.
constexpr Statement kNextRuntime{
    .name = "retention.next_runtime",
    .sql =
        "SELECT runtime FROM object WHERE account = $1 AND runtime > $2 ORDER BY runtime LIMIT 1"};
constexpr Statement kRegistered{.name = "retention.registered",
                                .sql = "SELECT name FROM runtime WHERE account = $1 AND name = $2"};
// The age keeps out objects of a runtime of this name that is registered meanwhile.
constexpr Statement kOrphans{
    .name = "retention.orphans",
    .sql =
        "SELECT id FROM object WHERE account = $1 AND runtime = $2 AND seen_at < $3 AND NOT EXISTS "
        "(SELECT 1 FROM runtime WHERE account = $1 AND name = $2) LIMIT $4",
    .postgres =
        "SELECT id FROM object WHERE account = $1 AND runtime = $2 AND seen_at < $3 AND NOT EXISTS "
        "(SELECT 1 FROM runtime WHERE account = $1 AND name = $2) LIMIT $4 FOR UPDATE SKIP "
        "LOCKED"};
constexpr Statement kSize{
    .name = "retention.size",
    .sql =
        "SELECT (c.page_count - f.freelist_count) * s.page_size FROM pragma_page_count c, "
        "pragma_freelist_count f, pragma_page_size s",
    .postgres = "SELECT pg_database_size(current_database())"};
constexpr Statement kRoom{.name = "retention.room",
                          .sql = "SELECT bytes, freed FROM storage_room WHERE one = 1"};
// As StorageBound::update().
constexpr Statement kKeepSize{
    .name = "retention.keep_size",
    .sql =
        "INSERT INTO storage_room (one, bytes, freed) VALUES (1, $1, 0) ON CONFLICT (one) DO "
        "UPDATE SET freed = CASE WHEN storage_room.freed > abs(excluded.bytes - "
        "storage_room.bytes) THEN storage_room.freed - abs(excluded.bytes - storage_room.bytes) "
        "ELSE 0 END, bytes = excluded.bytes"};
constexpr Statement kAddFreed{.name = "retention.add_freed",
                              .sql = "UPDATE storage_room SET freed = freed + $1 WHERE one = 1"};
constexpr Statement kHistoryOf{
    .name = "retention.history",
    .sql = "SELECT count(*) FROM (SELECT at FROM timeline WHERE account = $1 LIMIT $2) t"};
constexpr Statement kCutHistory{
    .name = "retention.cut_history",
    .sql =
        "DELETE FROM timeline WHERE (object, sequence) IN (SELECT object, sequence FROM timeline "
        "WHERE account = $1 ORDER BY at LIMIT $2)"};

constexpr std::array kRetentionStatements{
    kAccounts,     kSessions,        kPageTokens,      kReportRequests,  kChanges,
    kQuarantine,   kAudit,           kTimeline,        kReleases,        kNextKind,
    kGone,         kRemoveObject[0], kRemoveObject[1], kRemoveObject[2], kSize,
    kHistoryOf,    kRemoveObject[3], kRemoveObject[4], kCutHistory,      kPayloads,
    kSourceErrors, kNextRuntime,     kRegistered,      kOrphans,         kRoom,
    kKeepSize,     kAddFreed};

// Removes rows until a bound is reached.
class Removal {
 public:
  Removal(Connection& connection, std::int64_t most) : connection_(connection), left_(most) {}

  [[nodiscard]] std::int64_t left() const { return left_; }

  // The statement's last parameter is how many rows it may remove.
  Result<void> run(const Statement& statement, store::Params params) {
    if (left_ <= 0) return {};
    params.emplace_back(left_);
    const auto removed = connection_.run(statement, params);
    if (!removed) return std::unexpected(removed.error());
    left_ -= removed->changed();
    return {};
  }

  Result<void> run_gone(std::int64_t account, Micros before) {
    std::string kind;
    while (left_ > 0) {
      const auto next = connection_.run(kNextKind, {account, kind});
      if (!next) return std::unexpected(next.error());
      if (next->empty()) return {};
      kind = next->string(0, 0);
      const auto gone = connection_.run(kGone, {account, kind, before, left_});
      if (auto removed = remove_objects(account, gone); !removed) return removed;
    }
    return {};
  }

  Result<void> run_orphans(std::int64_t account, Micros before) {
    std::string runtime;
    while (left_ > 0) {
      const auto next = connection_.run(kNextRuntime, {account, runtime});
      if (!next) return std::unexpected(next.error());
      if (next->empty()) return {};
      runtime = next->string(0, 0);
      const auto registered = connection_.run(kRegistered, {account, runtime});
      if (!registered) return std::unexpected(registered.error());
      if (!registered->empty()) continue;
      const auto orphans = connection_.run(kOrphans, {account, runtime, before, left_});
      if (auto removed = remove_objects(account, orphans); !removed) return removed;
    }
    return {};
  }

 private:
  // Removes the objects of these ids with all that they have.
  Result<void> remove_objects(std::int64_t account, const Result<store::Rows>& ids) {
    if (!ids) return std::unexpected(ids.error());
    for (std::size_t row = 0; row < ids->size(); ++row) {
      for (const auto& statement : kRemoveObject) {
        const auto removed = connection_.run(statement, {account, ids->number(row, 0)});
        if (!removed) return std::unexpected(removed.error());
      }
      --left_;
    }
    return {};
  }

  Connection& connection_;
  std::int64_t left_;
};

}  // namespace

Result<std::vector<std::int64_t>> account_numbers(Connection& connection) {
  const auto rows = connection.run(kAccounts);
  if (!rows) return std::unexpected(rows.error());
  std::vector<std::int64_t> numbers;
  for (std::size_t row = 0; row < rows->size(); ++row) numbers.push_back(rows->number(row, 0));
  return numbers;
}

RetentionCuts retention_cuts(const RetentionPolicy& policy, Micros now) {
  const auto before = [now](auto age) {
    return now - std::chrono::duration_cast<std::chrono::microseconds>(age).count();
  };
  return {.timeline = before(policy.timeline),
          .gone = before(policy.gone),
          .quarantine = before(policy.quarantine),
          .source_reports = before(policy.source_reports),
          .audit = before(policy.audit),
          .changes = before(policy.changes),
          .orphans = before(policy.orphans),
          .sessions = now,
          .report_requests = now - kReportRequestsKept};
}

Result<std::int64_t> remove_expired(Connection& connection, const RetentionCuts& cuts,
                                    std::int64_t most) {
  Removal changes(connection, most * kOutboxShare);
  if (auto done = changes.run(kChanges, {cuts.changes}); !done) {
    return std::unexpected(std::move(done.error()));
  }
  Removal removal(connection, most);
  if (auto done = removal.run(kSessions, {cuts.sessions}); !done) {
    return std::unexpected(std::move(done.error()));
  }
  if (auto done = removal.run(kPageTokens, {cuts.sessions}); !done) {
    return std::unexpected(std::move(done.error()));
  }
  const auto accounts = account_numbers(connection);
  if (!accounts) return std::unexpected(accounts.error());
  const std::array<std::pair<const Statement*, Micros>, 7> by_age{
      {{&kTimeline, cuts.timeline},
       {&kReleases, cuts.timeline},
       {&kQuarantine, cuts.quarantine},
       {&kPayloads, cuts.source_reports},
       {&kSourceErrors, cuts.source_reports},
       {&kAudit, cuts.audit},
       {&kReportRequests, cuts.report_requests}}};
  for (const auto account : *accounts) {
    for (const auto& [statement, before] : by_age) {
      if (auto done = removal.run(*statement, {account, before}); !done) {
        return std::unexpected(std::move(done.error()));
      }
    }
    if (auto done = removal.run_gone(account, cuts.gone); !done) {
      return std::unexpected(std::move(done.error()));
    }
  }
  return most * kOutboxShare - changes.left() + most - removal.left();
}

Result<std::int64_t> remove_orphans(Connection& connection, Micros before, std::int64_t most) {
  const auto accounts = account_numbers(connection);
  if (!accounts) return std::unexpected(accounts.error());
  Removal removal(connection, most);
  for (const auto account : *accounts) {
    if (auto done = removal.run_orphans(account, before); !done) {
      return std::unexpected(std::move(done.error()));
    }
  }
  return most - removal.left();
}

std::string_view to_string(SizeState state) {
  constexpr std::array<std::string_view, 4> kWords{"normal", "warning", "trimming", "full"};
  return kWords.at(static_cast<std::size_t>(state));
}

std::int64_t StorageBound::used() const {
  return std::max<std::int64_t>(room_.bytes - room_.freed, 0);
}

int StorageBound::percent() const {
  if (limit_ <= 0) return 0;
  return static_cast<int>(used() / std::max<std::int64_t>(limit_ / 100, 1));
}

SizeState StorageBound::update(std::int64_t bytes) {
  if (limit_ <= 0) return SizeState::normal;
  // Files that shrink have given back what was deleted; files that grow have used it up.
  room_.freed = std::max<std::int64_t>(room_.freed - std::abs(bytes - room_.bytes), 0);
  room_.bytes = bytes;
  const auto share = percent();
  if (share >= kTrimmingPercent) is_cutting_ = true;
  if (share < kEnoughPercent) is_cutting_ = false;
  if (share >= kFullPercent) {
    state_ = SizeState::full;
  } else if (is_cutting_) {
    state_ = SizeState::trimming;
  } else {
    state_ = share >= kWarningPercent ? SizeState::warning : SizeState::normal;
  }
  return state_;
}

std::int64_t StorageBound::rows_to_cut(std::int64_t most) const {
  if (!is_cutting_) return 0;
  const auto above = used() - limit_ / 100 * kEnoughPercent;
  return std::clamp<std::int64_t>(above / kTimelineRowBytes + 1, 0, most);
}

void StorageBound::add_cut(std::int64_t rows) {
  room_.freed += rows * kTimelineRowBytes;
}

Result<std::int64_t> database_size(Connection& connection) {
  const auto rows = connection.run(kSize);
  if (!rows) return std::unexpected(rows.error());
  return rows->number(0, 0);
}

Result<StorageRoom> storage_room(Connection& connection) {
  const auto rows = connection.run(kRoom);
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return StorageRoom();
  return StorageRoom{.bytes = rows->number(0, 0), .freed = rows->number(0, 1)};
}

Result<void> keep_size(Connection& connection, std::int64_t bytes) {
  return connection.execute(kKeepSize, {bytes});
}

Result<std::int64_t> cut_oldest_history(Connection& connection, std::int64_t rows,
                                        std::int64_t most_counted) {
  const auto accounts = account_numbers(connection);
  if (!accounts) return std::unexpected(accounts.error());
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes;  // account, rows
  std::int64_t all = 0;
  for (const auto account : *accounts) {
    const auto count = connection.run(kHistoryOf, {account, most_counted});
    if (!count) return std::unexpected(count.error());
    sizes.emplace_back(account, count->number(0, 0));
    all += count->number(0, 0);
  }
  std::int64_t cut = 0;
  for (const auto& [account, size] : sizes) {
    if (size == 0) continue;
    // Rounded up, so that the last rows of small accounts go, too.
    const auto share = std::min((size * rows + all - 1) / all, rows - cut);
    const auto removed = connection.run(kCutHistory, {account, share});
    if (!removed) return std::unexpected(removed.error());
    cut += removed->changed();
  }
  const auto kept = connection.execute(kAddFreed, {cut * kTimelineRowBytes});
  if (!kept) return std::unexpected(kept.error());
  return cut;
}

std::span<const Statement> retention_statements() {
  return kRetentionStatements;
}

}  // namespace gitops::control_plane_server
