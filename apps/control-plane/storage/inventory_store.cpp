#include "control-plane/storage/inventory_store.hpp"

#include <array>

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Statement;

constexpr Statement kToken{
    .name = "storage.resync_token",
    .sql = "SELECT resync FROM reporter WHERE account = $1 AND runtime = $2 AND name = $3"};
constexpr Statement kEnd{
    .name = "storage.end_resync",
    .sql =
        "UPDATE reporter SET resync = '' WHERE account = $1 AND runtime = $2 AND name = $3 AND "
        "resync = $4"};
constexpr Statement kRows{
    .name = "storage.inventory_rows",
    .sql =
        "SELECT owner_uid, cluster, api_group, kind, namespace, name, uid, manager_name, "
        "sequence FROM object WHERE account = $1 AND runtime = $2 AND origin = $3 AND "
        "(owner_uid, cluster, api_group, kind, namespace, name) > ($4, $5, $6, $7, $8, $9) AND "
        "presence <> 1 ORDER BY owner_uid, cluster, api_group, kind, namespace, name LIMIT $10"};
constexpr Statement kRowsOf{
    .name = "storage.inventory_rows_of",
    .sql =
        "SELECT owner_uid, cluster, api_group, kind, namespace, name, uid, manager_name, "
        "sequence FROM object WHERE account = $1 AND runtime = $2 AND origin = 0 AND "
        "owner_uid = $3 AND presence <> 1"};

constexpr std::array kStatements{kToken, kEnd, kRows, kRowsOf};

std::vector<InventoryRow> rows_of(const store::Rows& rows, std::string_view runtime,
                                  Origin origin) {
  std::vector<InventoryRow> out;
  out.reserve(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    out.push_back({.key = {.runtime = std::string(runtime),
                           .origin = origin,
                           .owner_uid = rows.string(row, 0),
                           .cluster = rows.string(row, 1),
                           .group = rows.string(row, 2),
                           .kind = rows.string(row, 3),
                           .object_namespace = rows.string(row, 4),
                           .name = rows.string(row, 5)},
                   .uid = rows.string(row, 6),
                   .manager = rows.string(row, 7),
                   .sequence = rows.number(row, 8)});
  }
  return out;
}

}  // namespace

Result<std::string> resync_token(Connection& connection, const ReporterName& reporter) {
  const auto rows = connection.run(kToken, {reporter.account, reporter.runtime, reporter.name});
  if (!rows) return std::unexpected(rows.error());
  return rows->empty() ? std::string() : rows->string(0, 0);
}

Result<void> end_resync(Connection& connection, const ReporterName& reporter,
                        std::string_view token) {
  return connection.execute(kEnd, {reporter.account, reporter.runtime, reporter.name, token});
}

Result<std::vector<InventoryRow>> inventory_rows(Connection& connection, std::int64_t account,
                                                 const ObjectKey& after, std::int64_t limit) {
  const auto rows = connection.run(
      kRows, {account, after.runtime, static_cast<int>(after.origin), after.owner_uid,
              after.cluster, after.group, after.kind, after.object_namespace, after.name, limit});
  if (!rows) return std::unexpected(rows.error());
  return rows_of(*rows, after.runtime, after.origin);
}

Result<std::vector<InventoryRow>> inventory_rows_of(Connection& connection, std::int64_t account,
                                                    std::string_view runtime,
                                                    std::string_view owner_uid) {
  const auto rows = connection.run(kRowsOf, {account, runtime, owner_uid});
  if (!rows) return std::unexpected(rows.error());
  return rows_of(*rows, runtime, Origin::application);
}

std::span<const Statement> inventory_statements() {
  return kStatements;
}

}  // namespace gitops::control_plane_server
