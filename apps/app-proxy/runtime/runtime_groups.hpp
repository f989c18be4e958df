#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/control_plane/graphql.hpp"
#include "common/core/error.hpp"
#include "common/core/status_report.hpp"
#include "common/core/time.hpp"

// State of a runtime in groups, for people and the control plane. Pure.
namespace gitops::app_proxy {

inline constexpr std::string_view kNoGitToken = "the runtime has no Git token (GIT_PASSWORD)";

struct RuntimeGroup {
  std::string name;                      // "applications"
  std::vector<std::string> errors = {};  // each begins with the name of its object
  std::string unknown = {};              // reason for which some or all of it is unknown
  // The first read is in progress; the state may change at once.
  bool is_pending = false;
};
// Returns the errors in one line of at most 500 characters, five of them by name. Empty when there
// are none.
std::string describe_errors(const RuntimeGroup& group);
// Returns the group's entry on /statusz: "applications: ok", "applications: not known: …",
// "applications: in-cluster: Degraded: …".
StatusEntry entry_of(const RuntimeGroup& group);
// Returns an error for each group with errors. A group in an unknown state has none.
std::vector<control_plane::RuntimeError> errors_of(const std::vector<RuntimeGroup>& groups);

// Time after which an unsettled state is reported, because it often passes by itself.
inline constexpr auto kSettleTime = std::chrono::minutes(5);

// Errors of the servers that the runtime works with. An empty text means no error.
struct Connectivity {
  std::string control_plane = {};
  std::optional<std::string> argocd = {};     // unset: not configured
  std::optional<std::string> workflows = {};  // unset: not configured
  std::string git = {};
};
RuntimeGroup connectivity_group(const Connectivity& servers);

// An Application of the runtime itself.
struct OwnApplication {
  std::string name;
  bool exists = false;
  std::string sync = {};    // Synced, OutOfSync, Unknown
  std::string health = {};  // Healthy, Degraded, Missing and so on
  std::string health_message = {};
  std::string error = {};       // first error condition: "ComparisonError: …"
  std::string sync_error = {};  // of the last sync
};
// Parses an Application. `object` is empty when there is none.
OwnApplication read_application(std::string name, std::string_view object);
// True in a state that often passes by itself: the Application is missing, or its changes are not
// applied.
bool is_unsettled(const OwnApplication& application);
// Returns the error of an Application; empty when there is none. `is_lasting`: it has been
// unsettled for longer than kSettleTime.
std::string error_of(const OwnApplication& application, bool is_lasting);

// Returns errors of pods in a list that do not start, or have not been ready for longer than
// kSettleTime. Skips pods that have ended, that are being deleted, and those of Workflows.
std::vector<std::string> pod_errors(std::string_view list, WallTime now);

// Returns the group for Git sources. `error` is that of the shared configuration repository; empty:
// none, unset: not checked yet.
RuntimeGroup git_sources_group(bool has_git_token, const std::optional<std::string>& error);

// Returns the group for clusters that Argo CD cannot reach.
RuntimeGroup clusters_group(const Result<std::vector<control_plane::ClusterState>>& unreachable);

}  // namespace gitops::app_proxy
