#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/control_plane/graphql.hpp"
#include "common/core/error.hpp"
#include "common/core/status_report.hpp"
#include "common/core/time.hpp"

// The state of a runtime in groups, as people and the control plane are told. Pure.
namespace gitops::app_proxy {

inline constexpr std::string_view kNoGitToken = "the runtime has no Git token (GIT_PASSWORD)";

struct RuntimeGroup {
  std::string name;                      // "applications"
  std::vector<std::string> errors = {};  // each begins with the name of its object
  std::string unknown = {};              // why some or all of it is not known
  // It is looked at for the first time now: what is told of it may change at once.
  bool is_pending = false;
};
// The errors in one line of at most 500 characters, five of them by name. Empty: there are none.
std::string describe_errors(const RuntimeGroup& group);
// The group on /statusz: "applications: ok", "applications: not known: …", "applications: in-cluster: Degraded: …".
StatusEntry entry_of(const RuntimeGroup& group);
// An error for each group with errors. A group whose state is not known makes no error.
std::vector<control_plane::RuntimeError> errors_of(const std::vector<RuntimeGroup>& groups);

// A state that is told only after this time, because it often passes by itself.
inline constexpr auto kSettleTime = std::chrono::minutes(5);

// The servers that the runtime works with. An empty text: all is well.
struct Connectivity {
  std::string control_plane = {};
  std::optional<std::string> argocd = {};     // nothing: not configured
  std::optional<std::string> workflows = {};  // nothing: not configured
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
  std::string error = {};  // the first of its conditions that is an error: "ComparisonError: …"
  std::string sync_error = {};  // of the last sync
};
// `object`: empty when there is none.
OwnApplication read_application(std::string name, std::string_view object);
// In a state that often passes by itself: it is missing, or its changes are not applied.
bool is_unsettled(const OwnApplication& application);
// Empty: it is well. `is_lasting`: it has been unsettled for longer than kSettleTime.
std::string error_of(const OwnApplication& application, bool is_lasting);

// Pods of a list that do not start, or have not been ready for longer than kSettleTime. Pods that have ended, that are
// being deleted and those of Workflows are left out.
std::vector<std::string> pod_errors(std::string_view list, WallTime now);

// `error` is that of the shared configuration repository; empty: it is well, nothing: it was not looked at yet.
RuntimeGroup git_sources_group(bool has_git_token, const std::optional<std::string>& error);

// Those that Argo CD cannot reach.
RuntimeGroup clusters_group(const Result<std::vector<control_plane::ClusterState>>& unreachable);

}  // namespace gitops::app_proxy
