#include "control-plane/live/change_store.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Statement;

// Goes from one instance to the next in the index, instead of reading all rows.
constexpr Statement kHeads{
    .name = "live.heads",
    .sql =
        "WITH RECURSIVE i (instance) AS (SELECT (SELECT min(instance) FROM change) UNION ALL "
        "SELECT (SELECT min(c.instance) FROM change c WHERE c.instance > i.instance) FROM i "
        "WHERE i.instance IS NOT NULL) "
        "SELECT i.instance, (SELECT min(c.no) FROM change c WHERE c.instance = i.instance), "
        "(SELECT max(c.no) FROM change c WHERE c.instance = i.instance) FROM i "
        "WHERE i.instance IS NOT NULL"};
constexpr Statement kChanges{
    .name = "live.changes",
    .sql =
        "SELECT c.no, c.account, c.object, c.kind, o.uid, o.manager_uid FROM change c "
        "LEFT JOIN object o ON o.id = c.object AND o.account = c.account "
        "WHERE c.instance = $1 AND c.no > $2 ORDER BY c.no LIMIT $3"};
constexpr Statement kRuntimes{
    .name = "live.runtimes",
    .sql =
        "SELECT name, runtime_namespace, cluster, created_at, seen_at FROM runtime "
        "WHERE account = $1 ORDER BY name"};
constexpr std::array kChangeStatements{kHeads, kChanges, kRuntimes};

}  // namespace

Result<std::vector<OutboxHead>> outbox_heads(Connection& connection) {
  const auto rows = connection.run(kHeads);
  if (!rows) return std::unexpected(rows.error());
  std::vector<OutboxHead> heads;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    heads.push_back({.instance = rows->string(row, 0),
                     .first = rows->number(row, 1),
                     .last = rows->number(row, 2)});
  }
  return heads;
}

Result<OutboxPage> changes_after(Connection& connection, std::string_view instance, std::int64_t no,
                                 std::int64_t limit) {
  const auto rows = connection.run(kChanges, {instance, no, limit});
  if (!rows) return std::unexpected(rows.error());
  OutboxPage page;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    page.last = rows->number(row, 0);
    page.changes.push_back({.account = rows->number(row, 1),
                            .object = rows->number(row, 2),
                            .kind = rows->string(row, 3),
                            .uid = rows->string(row, 4),
                            .owner_uid = rows->string(row, 5)});
  }
  return page;
}

Result<std::vector<OutboxChange>> read_changes(Connection& connection, const ReadingPlan& plan,
                                               std::int64_t limit, ChangeCursor& cursor) {
  std::vector<OutboxChange> changes;
  for (const auto& part : plan.parts) {
    if (limit <= 0) break;
    auto page = changes_after(connection, part.instance, part.after, limit);
    if (!page) return std::unexpected(std::move(page.error()));
    if (page->changes.empty()) continue;
    limit -= static_cast<std::int64_t>(page->changes.size());
    cursor.numbers.insert_or_assign(part.instance, page->last);
    std::ranges::move(page->changes, std::back_inserter(changes));
  }
  return changes;
}

Result<std::vector<LiveRuntime>> live_runtimes(Connection& connection, std::int64_t account) {
  const auto rows = connection.run(kRuntimes, {account});
  if (!rows) return std::unexpected(rows.error());
  std::vector<LiveRuntime> found;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    found.push_back({.name = rows->string(row, 0),
                     .runtime_namespace = rows->string(row, 1),
                     .cluster = rows->string(row, 2),
                     .created_at = rows->number(row, 3),
                     .seen_at = rows->number(row, 4)});
  }
  return found;
}

std::span<const Statement> change_statements() {
  return kChangeStatements;
}

}  // namespace gitops::control_plane_server
