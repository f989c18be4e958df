#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app-proxy/entities/runtime_git_token.hpp"
#include "app-proxy/runtime/runtime_groups.hpp"
#include "common/core/log.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// A permission of app-proxy in its cluster.
struct NeededPermission {
  std::string group;  // of the API; empty for the core group
  std::string resource;
  std::string subresource = {};
  std::vector<std::string> verbs;
  std::string name = {};     // of the object; empty: any name
  bool everywhere = false;   // in all namespaces; a confined runtime: in its own
  std::string without = {};  // feature that fails without it: "image reports"
};
// Settings that decide which permissions are needed.
struct PermissionSettings {
  bool has_user_token = false;     // the runtime registers itself
  bool has_git_token = false;      // of the runtime itself
  bool has_image_reports = false;  // the chart enables image reports
  bool has_actions = false;        // Argo CD or Argo Workflows is configured
};
// Returns the permissions that charts/gitops-runtime grants for these settings. Pure; one test
// compares them with those of gitopsctl, and another one those with the chart.
std::vector<NeededPermission> needed_permissions(const PermissionSettings& settings);
// Returns a text such as "create, update secrets in namespace argocd". Pure.
std::string describe(const NeededPermission& permission, const std::vector<std::string>& verbs,
                     const std::string& ns);

// Asks the API server whether app-proxy has the permissions that it needs (SelfSubjectAccessReview,
// which needs no permission): some seconds after the start, when the runtime is registered, then
// once in a period. After a failed review the permission is unknown. Loop thread; its dependencies
// outlive it.
class PermissionCheck {
 public:
  struct Options {
    std::string own_namespace = {};
    Clock::duration first_pause = std::chrono::seconds(10);
    Clock::duration period = std::chrono::hours(1);
    Clock::duration retry = std::chrono::minutes(1);  // while one is missing or unknown
    Clock::duration timeout = std::chrono::seconds(10);
  };
  // `git_token` decides `has_git_token` in each round.
  PermissionCheck(k8s::Client& cluster, PermissionSettings settings, RuntimeGitToken& git_token,
                  Options options);

  // Runs until the group is cancelled.
  void start(TaskGroup& group);
  // Runs one round. Returns true when no permission is missing.
  Task<bool> round();
  // Missing permissions as of the last round.
  [[nodiscard]] const RuntimeGroup& permissions() const { return permissions_; }

 private:
  // Returns the missing verbs.
  Task<Result<std::vector<std::string>>> ask(const NeededPermission& permission);
  void log_changes(const RuntimeGroup& found);

  k8s::Client& cluster_;
  PermissionSettings settings_;
  RuntimeGitToken& git_token_;
  Options options_;
  RuntimeGroup permissions_{.name = "rights", .unknown = "not asked yet", .is_pending = true};
  Log log_{"rights"};
};

}  // namespace gitops::app_proxy
