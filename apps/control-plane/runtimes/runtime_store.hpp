#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/projection/object.hpp"

// Runtimes of an account in the database, with their clusters and the permissions of their Git sources. Errors and
// threads as in accounts/account_store.hpp.
namespace gitops::control_plane_server {

inline constexpr std::int64_t kMaxRuntimes = 1'000;             // of an account
inline constexpr std::int64_t kMaxClustersOfRuntime = 10'000;   // that are stored
inline constexpr Micros kRuntimeOnline = 5LL * 60 * 1'000'000;  // since its last request

struct RuntimeRow {
  std::string name;
  std::string runtime_namespace;
  std::string cluster;
  std::string arguments;  // JSON: RuntimeInstallationArgs as they came
  std::string status;     // JSON: the last RuntimeStatusArgs
  std::string errors;     // JSON: the last list of HealthErrorInput
  bool is_configuration_runtime = false;
  Micros created_at = 0;
  Micros seen_at = 0;  // 0: never
};

struct NewRuntime {
  std::string name;
  std::string runtime_namespace;
  std::string cluster;
  std::string arguments;  // JSON
};

// Returns why a runtime's name is refused, or an empty text. A name is a DNS label, since hosts of tunnels contain it.
std::string runtime_name_mistake(std::string_view name);

// Inserts a runtime, or updates the one of that name, and issues a new token. The first runtime of an account becomes
// its configuration runtime. invalid_argument: a malformed name, or too many runtimes.
Result<IssuedKey> create_runtime(store::Connection& connection, std::int64_t account,
                                 const NewRuntime& runtime, Micros now);
// Removes a runtime with its tokens, clusters, permissions, reporters and reports, and returns the ids of the revoked
// tokens. Its objects stay until remove_objects_of_runtime(). not_found: "runtime X does not exist"; clients search for
// this text.
Result<std::vector<std::string>> delete_runtime(store::Connection& connection, std::int64_t account,
                                                std::string_view name);
// Removes up to `limit` objects of a runtime with all dependent rows, and returns the number of objects.
Result<std::int64_t> remove_objects_of_runtime(store::Connection& connection, std::int64_t account,
                                               std::string_view runtime, std::int64_t limit);

Result<std::optional<RuntimeRow>> find_runtime(store::Connection& connection, std::int64_t account,
                                               std::string_view name);
// Returns the runtimes of an account, sorted by name, up to kMaxRuntimes.
Result<std::vector<RuntimeRow>> list_runtimes(store::Connection& connection, std::int64_t account);
// These functions store JSON as the runtime sent it. not_found: the runtime was deleted in the meantime.
Result<void> set_runtime_status(store::Connection& connection, std::int64_t account,
                                std::string_view name, std::string_view status);
Result<void> set_runtime_errors(store::Connection& connection, std::int64_t account,
                                std::string_view name, std::string_view errors);

// The state of a cluster's connection. The numbers are stored in the database.
enum class ClusterConnection : std::uint8_t { unknown = 0, successful = 1, failed = 2 };

struct ClusterRow {
  std::string runtime;
  std::string server;
  std::string name;
  std::string info;  // JSON: ClusterInfoInput
  ClusterConnection connection = ClusterConnection::unknown;
  Micros updated_at = 0;
};

// The report of a runtime about its clusters.
struct ClusterReport {
  std::vector<ClusterRow> present = {};   // added or replaced, by server
  std::vector<std::string> removed = {};  // servers
};
Result<void> apply_cluster_report(store::Connection& connection, std::int64_t account,
                                  std::string_view runtime, const ClusterReport& report,
                                  Micros now);

struct ClusterQuery {
  std::string runtime = {};  // empty: all
  // Key of the row before the first one; empty: from the start.
  std::string after_name = {};
  std::string after_runtime = {};
  std::string after_server = {};
  std::int64_t limit = 0;
};
// Returns clusters, sorted by name, runtime and server.
Result<std::vector<ClusterRow>> list_clusters(store::Connection& connection, std::int64_t account,
                                              const ClusterQuery& query);

struct ClusterCounts {
  std::int64_t managed = 0;    // without the runtime's own cluster
  std::int64_t connected = 0;  // of these
};
// Returns the numbers of clusters by runtime. Runtimes without clusters are absent.
Result<std::map<std::string, ClusterCounts>> count_clusters(store::Connection& connection,
                                                            std::int64_t account);

// The Applications that describe their runtime, by their label codefresh.io/entity.
struct RuntimeApplication {
  std::string runtime = {};
  std::string entity = {};  // "runtime" or "internal-config"
  std::string name = {};
  std::string application_namespace = {};
  std::string version = {};
  std::string uid = {};
  SyncStatus sync = SyncStatus::unknown;
  HealthStatus health = HealthStatus::none;
  std::string health_message = {};
  Micros created_at = 0;
  Micros changed_at = 0;
};
// Returns the Applications of one runtime, or of all when the name is empty, sorted by runtime and name.
Result<std::vector<RuntimeApplication>> list_runtime_applications(store::Connection& connection,
                                                                  std::int64_t account,
                                                                  std::string_view runtime);

struct AccountUsage {
  std::int64_t applications = 0;
  std::int64_t clusters = 0;
};
Result<AccountUsage> count_usage(store::Connection& connection, std::int64_t account);

// Replaces the permissions of a Git source: JSON, a list of {"userId","read","write"}. not_found: the runtime has no
// Git source of that name.
Result<void> set_git_source_permissions(store::Connection& connection, std::int64_t account,
                                        std::string_view runtime, std::string_view source_namespace,
                                        std::string_view name, std::string_view permissions,
                                        Micros now);

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> runtime_statements();

}  // namespace gitops::control_plane_server
