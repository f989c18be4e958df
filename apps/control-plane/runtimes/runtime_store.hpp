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
  std::string status;     // JSON: RuntimeStatusArgs as they came last
  std::string errors;     // JSON: the list of HealthErrorInput that came last
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

// Why a runtime's name is refused, or an empty text: a DNS label, since hosts of tunnels hold it.
std::string runtime_name_mistake(std::string_view name);

// Inserts a runtime, or updates the one of that name, and issues a new token. The first runtime of an account is its
// configuration runtime. invalid_argument: the name, or too many runtimes.
Result<IssuedKey> create_runtime(store::Connection& connection, std::int64_t account,
                                 const NewRuntime& runtime, Micros now);
// Removes a runtime with its tokens, clusters, permissions and reporters, and returns the ids of the revoked tokens. Its
// objects stay until remove_objects_of_runtime(). not_found: "runtime X does not exist", the words that clients look for.
Result<std::vector<std::string>> delete_runtime(store::Connection& connection, std::int64_t account,
                                                std::string_view name);
// Removes up to `limit` objects of a runtime with all that belongs to them, and returns how many it were.
Result<std::int64_t> remove_objects_of_runtime(store::Connection& connection, std::int64_t account,
                                               std::string_view runtime, std::int64_t limit);

Result<std::optional<RuntimeRow>> find_runtime(store::Connection& connection, std::int64_t account,
                                               std::string_view name);
// By name, up to kMaxRuntimes.
Result<std::vector<RuntimeRow>> list_runtimes(store::Connection& connection, std::int64_t account);
// These take the runtime's words for JSON. not_found: the runtime was deleted meanwhile.
Result<void> set_runtime_status(store::Connection& connection, std::int64_t account,
                                std::string_view name, std::string_view status);
Result<void> set_runtime_errors(store::Connection& connection, std::int64_t account,
                                std::string_view name, std::string_view errors);

// The numbers are those of the database.
enum class ClusterConnection : std::uint8_t { unknown = 0, successful = 1, failed = 2 };

struct ClusterRow {
  std::string runtime;
  std::string server;
  std::string name;
  std::string info;  // JSON: ClusterInfoInput
  ClusterConnection connection = ClusterConnection::unknown;
  Micros updated_at = 0;
};

// What a runtime reports of its clusters.
struct ClusterReport {
  std::vector<ClusterRow> present = {};   // added or replaced, by server
  std::vector<std::string> removed = {};  // servers
};
Result<void> apply_cluster_report(store::Connection& connection, std::int64_t account,
                                  std::string_view runtime, const ClusterReport& report,
                                  Micros now);

struct ClusterQuery {
  std::string runtime = {};  // empty: all
  // The key of the row before the first one; empty: from the start.
  std::string after_name = {};
  std::string after_runtime = {};
  std::string after_server = {};
  std::int64_t limit = 0;
};
// By name, runtime and server.
Result<std::vector<ClusterRow>> list_clusters(store::Connection& connection, std::int64_t account,
                                              const ClusterQuery& query);

struct ClusterCounts {
  std::int64_t managed = 0;    // without the runtime's own cluster
  std::int64_t connected = 0;  // of these
};
// By runtime; those without clusters are absent.
Result<std::map<std::string, ClusterCounts>> count_clusters(store::Connection& connection,
                                                            std::int64_t account);

// The Applications that say something of their runtime: by their label codefresh.io/entity.
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
// By runtime and name. Of one runtime, or of all when the name is empty.
Result<std::vector<RuntimeApplication>> list_runtime_applications(store::Connection& connection,
                                                                  std::int64_t account,
                                                                  std::string_view runtime);

struct AccountUsage {
  std::int64_t applications = 0;
  std::int64_t clusters = 0;
};
Result<AccountUsage> count_usage(store::Connection& connection, std::int64_t account);

// Replaces the permissions of a Git source: JSON, a list of {"userId","read","write"}. not_found: the runtime has no Git
// source of that name.
Result<void> set_git_source_permissions(store::Connection& connection, std::int64_t account,
                                        std::string_view runtime, std::string_view source_namespace,
                                        std::string_view name, std::string_view permissions,
                                        Micros now);

// For the test that prepares every statement.
std::span<const store::Statement> runtime_statements();

}  // namespace gitops::control_plane_server
