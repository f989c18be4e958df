#include "control-plane/runtimes/runtime_store.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Rows;
using store::Statement;

constexpr std::size_t kMaxRuntimeName = 63;  // of a DNS label

constexpr std::string_view kRuntimeSelect =
    "SELECT name, runtime_namespace, cluster, arguments, status, errors, "
    "is_configuration_runtime, created_at, seen_at FROM runtime WHERE account = $1";
constexpr std::string_view kRuntimeOfName = " AND name = $2";
constexpr std::string_view kRuntimesInOrder = " ORDER BY name LIMIT $2";

constexpr Statement kPutRuntime{
    .name = "runtimes.put",
    .sql =
        "INSERT INTO runtime (account, name, runtime_namespace, cluster, arguments, "
        "is_configuration_runtime, created_at) VALUES ($1, $2, $3, $4, $5, "
        "CASE WHEN EXISTS (SELECT 1 FROM runtime WHERE account = $1 AND "
        "is_configuration_runtime = 1) THEN 0 ELSE 1 END, $6) "
        "ON CONFLICT (account, name) DO UPDATE SET runtime_namespace = excluded.runtime_namespace, "
        "cluster = excluded.cluster, arguments = excluded.arguments"};
constexpr Statement kRuntime{.name = "runtimes.one",
                             .sql = store::joined<kRuntimeSelect, kRuntimeOfName>};
constexpr Statement kRuntimes{.name = "runtimes.list",
                              .sql = store::joined<kRuntimeSelect, kRuntimesInOrder>};
constexpr Statement kCountRuntimes{.name = "runtimes.count",
                                   .sql = "SELECT COUNT(*) FROM runtime WHERE account = $1"};
constexpr Statement kDropRuntime{.name = "runtimes.drop",
                                 .sql = "DELETE FROM runtime WHERE account = $1 AND name = $2"};
// The oldest runtime becomes the configuration runtime when that is deleted.
constexpr Statement kInheritConfiguration{
    .name = "runtimes.inherit_configuration",
    .sql =
        "UPDATE runtime SET is_configuration_runtime = 1 WHERE account = $1 AND name = "
        "(SELECT name FROM runtime WHERE account = $1 ORDER BY created_at, name LIMIT 1) AND NOT "
        "EXISTS (SELECT 1 FROM runtime WHERE account = $1 AND is_configuration_runtime = 1)"};
constexpr Statement kDropClusters{.name = "runtimes.drop_clusters",
                                  .sql = "DELETE FROM cluster WHERE account = $1 AND runtime = $2"};
constexpr Statement kDropPermissions{
    .name = "runtimes.drop_permissions",
    .sql = "DELETE FROM git_source_permission WHERE account = $1 AND runtime = $2"};
// Locked in the order in which a batch of events locks them; a deletion takes them as they lie in the table.
constexpr Statement kLockReporters{
    .name = "runtimes.lock_reporters",
    .sql = "SELECT name FROM reporter WHERE account = $1 AND runtime = $2",
    .postgres =
        "SELECT name FROM reporter WHERE account = $1 AND runtime = $2 ORDER BY name FOR UPDATE"};
constexpr Statement kDropReporters{
    .name = "runtimes.drop_reporters",
    .sql = "DELETE FROM reporter WHERE account = $1 AND runtime = $2"};
// Reports, which another runtime of this name would show as its own.
constexpr Statement kDropEventPayloads{
    .name = "runtimes.drop_event_payloads",
    .sql = "DELETE FROM event_payload WHERE account = $1 AND runtime = $2"};
constexpr Statement kDropSourceErrors{
    .name = "runtimes.drop_source_errors",
    .sql = "DELETE FROM source_error WHERE account = $1 AND runtime = $2"};
constexpr Statement kDropReportRequests{
    .name = "runtimes.drop_report_requests",
    .sql = "DELETE FROM report_request WHERE account = $1 AND runtime = $2"};
constexpr Statement kDropPageTokens{
    .name = "runtimes.drop_page_tokens",
    .sql = "DELETE FROM page_token WHERE account = $1 AND runtime = $2"};
constexpr Statement kSetStatus{
    .name = "runtimes.set_status",
    .sql = "UPDATE runtime SET status = $3 WHERE account = $1 AND name = $2"};
constexpr Statement kSetErrors{
    .name = "runtimes.set_errors",
    .sql = "UPDATE runtime SET errors = $3 WHERE account = $1 AND name = $2"};

// Locked in the order in which a batch of events locks them, and before their bodies, as there. Otherwise the two could
// wait for each other.
constexpr Statement kObjectsOfRuntime{
    .name = "runtimes.objects",
    .sql = "SELECT id FROM object WHERE account = $1 AND runtime = $2 LIMIT $3",
    .postgres =
        "SELECT id FROM object WHERE account = $1 AND runtime = $2 ORDER BY id LIMIT $3 FOR "
        "UPDATE"};
constexpr Statement kDropBody{
    .name = "runtimes.drop_body",
    .sql =
        "DELETE FROM body WHERE object IN (SELECT id FROM object WHERE account = $1 AND id = $2)"};
constexpr Statement kDropLabels{.name = "runtimes.drop_labels",
                                .sql = "DELETE FROM label WHERE account = $1 AND object = $2"};
constexpr Statement kDropTimeline{.name = "runtimes.drop_timeline",
                                  .sql = "DELETE FROM timeline WHERE account = $1 AND object = $2"};
constexpr Statement kDropReleases{
    .name = "runtimes.drop_releases",
    .sql = "DELETE FROM app_release WHERE account = $1 AND object = $2"};
constexpr Statement kDropObject{.name = "runtimes.drop_object",
                                .sql = "DELETE FROM object WHERE account = $1 AND id = $2"};

constexpr Statement kPutCluster{
    .name = "runtimes.put_cluster",
    .sql =
        "INSERT INTO cluster (account, runtime, server, name, info, connection, updated_at) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (account, runtime, server) DO UPDATE SET "
        "name = excluded.name, info = excluded.info, connection = excluded.connection, "
        "updated_at = excluded.updated_at"};
constexpr Statement kDropCluster{
    .name = "runtimes.drop_cluster",
    .sql = "DELETE FROM cluster WHERE account = $1 AND runtime = $2 AND server = $3"};
constexpr Statement kCountClustersOfRuntime{
    .name = "runtimes.count_clusters_of_runtime",
    .sql = "SELECT COUNT(*) FROM cluster WHERE account = $1 AND runtime = $2"};
constexpr Statement kClusters{
    .name = "runtimes.clusters",
    .sql =
        "SELECT runtime, server, name, info, connection, updated_at FROM cluster "
        "WHERE account = $1 AND (name, runtime, server) > ($2, $3, $4) "
        "ORDER BY name, runtime, server LIMIT $5"};
constexpr Statement kClustersOfRuntime{
    .name = "runtimes.clusters_of_runtime",
    .sql =
        "SELECT runtime, server, name, info, connection, updated_at FROM cluster "
        "WHERE account = $1 AND runtime = $6 AND (name, runtime, server) > ($2, $3, $4) "
        "ORDER BY name, runtime, server LIMIT $5"};
constexpr Statement kCountClusters{
    .name = "runtimes.count_clusters",
    .sql =
        "SELECT runtime, COUNT(*), COUNT(CASE WHEN connection = 1 THEN 1 END) FROM cluster "
        "WHERE account = $1 AND server <> $2 GROUP BY runtime"};

constexpr std::string_view kApplicationsSelect =
    "SELECT object.runtime, object.entity, object.name, object.namespace, object.version, "
    "object.uid, object.sync, object.health, object.health_message, object.created_at, "
    "object.changed_at FROM label JOIN object ON object.id = label.object "
    "WHERE label.account = $1 AND label.key = 'codefresh.io/entity' AND label.value IN "
    "('runtime', 'internal-config') AND object.account = $1 AND object.kind = 'Application' AND "
    "object.api_group = 'argoproj.io' AND object.presence = 0";
constexpr std::string_view kApplicationsOfRuntime = " AND object.runtime = $2";
constexpr std::string_view kApplicationsInOrder = " ORDER BY object.runtime, object.name";
constexpr Statement kRuntimeApplications{
    .name = "runtimes.applications",
    .sql = store::joined<kApplicationsSelect, kApplicationsInOrder>};
constexpr Statement kApplicationsOfOneRuntime{
    .name = "runtimes.applications_of_runtime",
    .sql = store::joined<kApplicationsSelect, kApplicationsOfRuntime, kApplicationsInOrder>};

constexpr Statement kCountApplications{
    .name = "runtimes.count_applications",
    .sql =
        "SELECT COUNT(*) FROM object WHERE account = $1 AND kind = 'Application' AND presence = 0"};
constexpr Statement kCountAllClusters{.name = "runtimes.count_all_clusters",
                                      .sql = "SELECT COUNT(*) FROM cluster WHERE account = $1"};

constexpr Statement kGitSource{
    .name = "runtimes.git_source",
    .sql =
        "SELECT id FROM object WHERE account = $1 AND kind = 'Application' AND name = $2 AND "
        "runtime = $3 AND namespace = $4 AND entity = 'git-source' AND presence <> 1 LIMIT 1"};
constexpr Statement kPutPermissions{
    .name = "runtimes.put_permissions",
    .sql =
        "INSERT INTO git_source_permission (account, runtime, source_namespace, name, "
        "permissions, updated_at) VALUES ($1, $2, $3, $4, $5, $6) "
        "ON CONFLICT (account, runtime, source_namespace, name) DO UPDATE SET "
        "permissions = excluded.permissions, updated_at = excluded.updated_at"};

constexpr std::array kRuntimeStatements{kPutRuntime,
                                        kRuntime,
                                        kRuntimes,
                                        kCountRuntimes,
                                        kDropRuntime,
                                        kInheritConfiguration,
                                        kDropClusters,
                                        kDropPermissions,
                                        kLockReporters,
                                        kDropReporters,
                                        kDropEventPayloads,
                                        kDropSourceErrors,
                                        kDropReportRequests,
                                        kDropPageTokens,
                                        kSetStatus,
                                        kSetErrors,
                                        kObjectsOfRuntime,
                                        kDropBody,
                                        kDropLabels,
                                        kDropTimeline,
                                        kDropReleases,
                                        kDropObject,
                                        kPutCluster,
                                        kDropCluster,
                                        kCountClustersOfRuntime,
                                        kClusters,
                                        kClustersOfRuntime,
                                        kCountClusters,
                                        kRuntimeApplications,
                                        kApplicationsOfOneRuntime,
                                        kCountApplications,
                                        kCountAllClusters,
                                        kGitSource,
                                        kPutPermissions};

RuntimeRow runtime_at(const Rows& rows, std::size_t row) {
  return {.name = rows.string(row, 0),
          .runtime_namespace = rows.string(row, 1),
          .cluster = rows.string(row, 2),
          .arguments = rows.string(row, 3),
          .status = rows.string(row, 4),
          .errors = rows.string(row, 5),
          .is_configuration_runtime = rows.number(row, 6) != 0,
          .created_at = rows.number(row, 7),
          .seen_at = rows.number(row, 8)};
}

ClusterConnection connection_of(std::int64_t number) {
  if (number == 1) return ClusterConnection::successful;
  return number == 2 ? ClusterConnection::failed : ClusterConnection::unknown;
}

std::unexpected<Error> no_runtime(std::string_view name) {
  return fail(ErrorCode::not_found, "runtime " + std::string(name) + " does not exist");
}

// Turns a statement that changed no row of that runtime into not_found.
Result<void> changed_runtime(const Result<Rows>& rows, std::string_view name) {
  if (!rows) return std::unexpected(rows.error());
  if (rows->changed() == 0) return no_runtime(name);
  return {};
}

Result<std::int64_t> number_of(const Result<Rows>& rows) {
  if (!rows) return std::unexpected(rows.error());
  return rows->number(0, 0);
}

}  // namespace

std::string runtime_name_mistake(std::string_view name) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool is_label = !name.empty() && name.size() <= kMaxRuntimeName && is_plain(name.front()) &&
                        is_plain(name.back()) &&
                        std::ranges::all_of(name, [&](char c) { return c == '-' || is_plain(c); });
  return is_label ? std::string()
                  : "a runtime's name has 1 to 63 lower-case letters, digits and hyphens, with no "
                    "hyphen at an end";
}

Result<IssuedKey> create_runtime(Connection& connection, std::int64_t account,
                                 const NewRuntime& runtime, Micros now) {
  if (auto mistake = runtime_name_mistake(runtime.name); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  const auto existing = find_runtime(connection, account, runtime.name);
  if (!existing) return std::unexpected(existing.error());
  if (!*existing) {
    const auto count = number_of(connection.run(kCountRuntimes, {account}));
    if (!count) return std::unexpected(count.error());
    if (*count >= kMaxRuntimes) {
      return fail(ErrorCode::invalid_argument,
                  "the account has " + std::to_string(kMaxRuntimes) + " runtimes, the most");
    }
  }
  const auto put = connection.run(kPutRuntime, {account, runtime.name, runtime.runtime_namespace,
                                                runtime.cluster, runtime.arguments, now});
  if (!put) return std::unexpected(put.error());
  return create_runtime_token(connection, account, runtime.name, now);
}

Result<std::vector<std::string>> delete_runtime(Connection& connection, std::int64_t account,
                                                std::string_view name) {
  // The reporters before the runtime, as a batch of events locks them. Otherwise the two could wait
  // for each other.
  for (const auto& statement : {kLockReporters, kDropReporters}) {
    const auto reporters = connection.run(statement, {account, name});
    if (!reporters) return std::unexpected(reporters.error());
  }
  if (auto dropped = changed_runtime(connection.run(kDropRuntime, {account, name}), name);
      !dropped) {
    return std::unexpected(std::move(dropped.error()));
  }
  for (const auto& statement : {kDropClusters, kDropPermissions, kDropEventPayloads,
                                kDropSourceErrors, kDropReportRequests, kDropPageTokens}) {
    const auto dropped = connection.run(statement, {account, name});
    if (!dropped) return std::unexpected(dropped.error());
  }
  const auto inherited = connection.run(kInheritConfiguration, {account});
  if (!inherited) return std::unexpected(inherited.error());
  return revoke_runtime_tokens(connection, account, name);
}

Result<std::int64_t> remove_objects_of_runtime(Connection& connection, std::int64_t account,
                                               std::string_view runtime, std::int64_t limit) {
  const auto objects = connection.run(kObjectsOfRuntime, {account, runtime, limit});
  if (!objects) return std::unexpected(objects.error());
  for (std::size_t row = 0; row < objects->size(); ++row) {
    for (const auto& statement :
         {kDropBody, kDropLabels, kDropTimeline, kDropReleases, kDropObject}) {
      const auto dropped = connection.run(statement, {account, objects->number(row, 0)});
      if (!dropped) return std::unexpected(dropped.error());
    }
  }
  return static_cast<std::int64_t>(objects->size());
}

Result<std::optional<RuntimeRow>> find_runtime(Connection& connection, std::int64_t account,
                                               std::string_view name) {
  const auto rows = connection.run(kRuntime, {account, name});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return std::optional<RuntimeRow>();
  return std::optional(runtime_at(*rows, 0));
}

Result<std::vector<RuntimeRow>> list_runtimes(Connection& connection, std::int64_t account) {
  const auto rows = connection.run(kRuntimes, {account, kMaxRuntimes});
  if (!rows) return std::unexpected(rows.error());
  std::vector<RuntimeRow> runtimes;
  for (std::size_t row = 0; row < rows->size(); ++row) runtimes.push_back(runtime_at(*rows, row));
  return runtimes;
}

Result<void> set_runtime_status(Connection& connection, std::int64_t account, std::string_view name,
                                std::string_view status) {
  return changed_runtime(connection.run(kSetStatus, {account, name, status}), name);
}

Result<void> set_runtime_errors(Connection& connection, std::int64_t account, std::string_view name,
                                std::string_view errors) {
  return changed_runtime(connection.run(kSetErrors, {account, name, errors}), name);
}

Result<void> apply_cluster_report(Connection& connection, std::int64_t account,
                                  std::string_view runtime, const ClusterReport& report,
                                  Micros now) {
  const auto known = find_runtime(connection, account, runtime);
  if (!known) return std::unexpected(known.error());
  if (!*known) return no_runtime(runtime);
  for (const auto& server : report.removed) {
    const auto dropped = connection.run(kDropCluster, {account, runtime, server});
    if (!dropped) return std::unexpected(dropped.error());
  }
  for (const auto& cluster : report.present) {
    const auto put =
        connection.run(kPutCluster, {account, runtime, cluster.server, cluster.name, cluster.info,
                                     static_cast<std::int64_t>(cluster.connection), now});
    if (!put) return std::unexpected(put.error());
  }
  const auto count = number_of(connection.run(kCountClustersOfRuntime, {account, runtime}));
  if (!count) return std::unexpected(count.error());
  if (*count > kMaxClustersOfRuntime) {
    return fail(ErrorCode::invalid_argument,
                "a runtime has at most " + std::to_string(kMaxClustersOfRuntime) + " clusters");
  }
  return {};
}

Result<std::vector<ClusterRow>> list_clusters(Connection& connection, std::int64_t account,
                                              const ClusterQuery& query) {
  const auto rows =
      query.runtime.empty()
          ? connection.run(kClusters, {account, query.after_name, query.after_runtime,
                                       query.after_server, query.limit})
          : connection.run(kClustersOfRuntime, {account, query.after_name, query.after_runtime,
                                                query.after_server, query.limit, query.runtime});
  if (!rows) return std::unexpected(rows.error());
  std::vector<ClusterRow> clusters;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    clusters.push_back({.runtime = rows->string(row, 0),
                        .server = rows->string(row, 1),
                        .name = rows->string(row, 2),
                        .info = rows->string(row, 3),
                        .connection = connection_of(rows->number(row, 4)),
                        .updated_at = rows->number(row, 5)});
  }
  return clusters;
}

Result<std::map<std::string, ClusterCounts>> count_clusters(Connection& connection,
                                                            std::int64_t account) {
  const auto rows = connection.run(kCountClusters, {account, kInCluster});
  if (!rows) return std::unexpected(rows.error());
  std::map<std::string, ClusterCounts> counts;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    counts[rows->string(row, 0)] = {.managed = rows->number(row, 1),
                                    .connected = rows->number(row, 2)};
  }
  return counts;
}

Result<std::vector<RuntimeApplication>> list_runtime_applications(Connection& connection,
                                                                  std::int64_t account,
                                                                  std::string_view runtime) {
  const auto rows = runtime.empty() ? connection.run(kRuntimeApplications, {account})
                                    : connection.run(kApplicationsOfOneRuntime, {account, runtime});
  if (!rows) return std::unexpected(rows.error());
  std::vector<RuntimeApplication> applications;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    applications.push_back({.runtime = rows->string(row, 0),
                            .entity = rows->string(row, 1),
                            .name = rows->string(row, 2),
                            .application_namespace = rows->string(row, 3),
                            .version = rows->string(row, 4),
                            .uid = rows->string(row, 5),
                            .sync = static_cast<SyncStatus>(rows->number(row, 6)),
                            .health = static_cast<HealthStatus>(rows->number(row, 7)),
                            .health_message = rows->string(row, 8),
                            .created_at = rows->number(row, 9),
                            .changed_at = rows->number(row, 10)});
  }
  return applications;
}

Result<AccountUsage> count_usage(Connection& connection, std::int64_t account) {
  const auto applications = number_of(connection.run(kCountApplications, {account}));
  if (!applications) return std::unexpected(applications.error());
  const auto clusters = number_of(connection.run(kCountAllClusters, {account}));
  if (!clusters) return std::unexpected(clusters.error());
  return AccountUsage{.applications = *applications, .clusters = *clusters};
}

Result<void> set_git_source_permissions(Connection& connection, std::int64_t account,
                                        std::string_view runtime, std::string_view source_namespace,
                                        std::string_view name, std::string_view permissions,
                                        Micros now) {
  const auto source = connection.run(kGitSource, {account, name, runtime, source_namespace});
  if (!source) return std::unexpected(source.error());
  if (source->empty()) {
    return fail(ErrorCode::not_found, "runtime " + std::string(runtime) + " has no Git source " +
                                          std::string(source_namespace) + "/" + std::string(name));
  }
  return connection.execute(kPutPermissions,
                            {account, runtime, source_namespace, name, permissions, now});
}

std::span<const Statement> runtime_statements() {
  return kRuntimeStatements;
}

}  // namespace gitops::control_plane_server
