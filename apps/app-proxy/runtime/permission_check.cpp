#include "app-proxy/runtime/permission_check.hpp"

#include <algorithm>
#include <utility>

#include "common/core/text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr const char* kArgo = "argoproj.io";
constexpr const char* kLeases = "coordination.k8s.io";

// Adds the permissions for user actions on objects of Argo.
void add_actions(std::vector<NeededPermission>& permissions) {
  const auto add = [&](const char* group, const char* resource, std::vector<std::string> verbs,
                       const char* without, const char* subresource = "") {
    permissions.push_back({.group = group,
                           .resource = resource,
                           .subresource = subresource,
                           .verbs = std::move(verbs),
                           .everywhere = true,
                           .without = without});
  };
  add(kArgo, "analysisruns", {"get", "patch"}, "AnalysisRuns cannot be ended");
  add(kArgo, "experiments", {"get", "patch"}, "Experiments cannot be ended");
  add(kArgo, "rollouts", {"get", "patch"}, "actions on Rollouts fail");
  add(kArgo, "rollouts", {"patch"}, "actions on Rollouts fail", "status");
  add("apps", "replicasets", {"get", "list", "patch"}, "Rollouts cannot be rolled back");
  add("apps", "deployments", {"get", "patch"},
      "Rollouts that refer to Deployments cannot be rolled back");
  add("", "podtemplates", {"get", "patch"},
      "Rollouts that refer to PodTemplates cannot be rolled back");
  add(kArgo, "workflows", {"create", "delete", "get", "patch", "update", "watch"},
      "actions on Workflows fail");
  add(kArgo, "workflowtemplates", {"get"}, "Workflows cannot be submitted");
  add("", "pods", {"delete", "get", "list", "watch"},
      "Workflows cannot be retried, and their logs cannot be read");
  add("", "pods", {"get"}, "the logs of Workflows cannot be read", "log");
  add("", "events", {"watch"}, "the events of pods cannot be shown");
}

// Adds the permissions for the registration and the report of clusters by one of several replicas.
void add_registration(std::vector<NeededPermission>& permissions) {
  constexpr const char* kNoRegistration = "the runtime is not registered, and nothing is reported";
  constexpr const char* kNoClusters = "clusters are not reported";
  permissions.push_back(
      {.group = kLeases, .resource = "leases", .verbs = {"create"}, .without = kNoRegistration});
  permissions.push_back({.group = kLeases,
                         .resource = "leases",
                         .verbs = {"get", "update"},
                         .name = "cap-app-proxy",
                         .without = kNoRegistration});
  permissions.push_back(
      {.group = "", .resource = "configmaps", .verbs = {"create"}, .without = kNoClusters});
  permissions.push_back({.group = "",
                         .resource = "configmaps",
                         .verbs = {"get", "update"},
                         .name = "cap-app-proxy-clusters",
                         .without = kNoClusters});
}

}  // namespace

std::vector<NeededPermission> needed_permissions(const PermissionSettings& settings) {
  std::vector<NeededPermission> permissions{
      {.group = "",
       .resource = "secrets",
       .verbs = {"create", "delete", "get", "list", "update"},
       .without = "Git integrations, the runtime's Secrets and managed clusters cannot be kept"},
      {.group = "",
       .resource = "pods",
       .verbs = {"list"},
       .without = "the runtime's components are not found"},
      {.group = "",
       .resource = "pods",
       .subresource = "log",
       .verbs = {"get"},
       .without = "the logs of the runtime's components cannot be read"}};
  if (settings.has_git_token) {
    permissions.push_back({.group = kArgo,
                           .resource = "applications",
                           .verbs = {"create", "delete", "get", "patch"},
                           .without = "the shared configuration repository is not applied"});
  }
  if (settings.has_user_token) add_registration(permissions);
  if (settings.has_image_reports) {
    permissions.push_back({.group = kArgo,
                           .resource = "workflows",
                           .verbs = {"create", "delete", "get"},
                           .without = "images are not reported"});
    permissions.push_back({.group = "",
                           .resource = "configmaps",
                           .verbs = {"get"},
                           .without = "reports of images cannot name integrations"});
  }
  if (settings.has_actions) add_actions(permissions);
  return permissions;
}

std::string describe(const NeededPermission& permission, const std::vector<std::string>& verbs,
                     const std::string& ns) {
  std::string text = join(verbs, ", ") + " " + permission.resource;
  if (!permission.subresource.empty()) text += "/" + permission.subresource;
  if (!permission.group.empty()) text += "." + permission.group;
  if (!permission.name.empty()) text += " " + permission.name;
  return text + (permission.everywhere ? " in all namespaces" : " in namespace " + ns);
}

PermissionCheck::PermissionCheck(k8s::Client& cluster, PermissionSettings settings,
                                 RuntimeGitToken& git_token, Options options)
    : cluster_(cluster), settings_(settings), git_token_(git_token), options_(std::move(options)) {}

void PermissionCheck::start(TaskGroup& group) {
  group.spawn("rights", [this]() -> Task<> {
    co_await sleep_for(options_.first_pause);
    while (true) {
      const bool is_complete = co_await round();
      co_await sleep_for(is_complete ? options_.period : options_.retry);
    }
  });
}

Task<bool> PermissionCheck::round() {
  RuntimeGroup found{.name = permissions_.name};
  settings_.has_git_token = git_token_.is_set();
  const auto needed = needed_permissions(settings_);
  for (const auto& permission : needed) {
    const auto missing = co_await ask(permission);
    if (!missing) {
      // An unreachable API server proves no missing permission.
      found.unknown = missing.error().message;
      break;
    }
    if (missing->empty()) continue;
    found.errors.push_back("app-proxy may not " +
                           describe(permission, *missing, options_.own_namespace) + ": " +
                           permission.without);
  }
  log_changes(found);
  permissions_ = std::move(found);
  co_return permissions_.errors.empty() && permissions_.unknown.empty();
}

Task<Result<std::vector<std::string>>> PermissionCheck::ask(const NeededPermission& permission) {
  std::vector<std::string> missing;
  for (const auto& verb : permission.verbs) {
    k8s::Client::Access access{.verb = verb,
                               .group = permission.group,
                               .resource = permission.resource,
                               .subresource = permission.subresource,
                               .ns = permission.everywhere ? std::string() : options_.own_namespace,
                               .name = permission.name};
    auto allowed = co_await cluster_.can_i(access, deadline_after(options_.timeout));
    if (allowed && !*allowed && permission.everywhere) {
      // A runtime that is confined to its namespace has the permission in that namespace.
      access.ns = options_.own_namespace;
      allowed = co_await cluster_.can_i(std::move(access), deadline_after(options_.timeout));
    }
    if (!allowed) co_return std::unexpected(std::move(allowed.error()));
    if (!*allowed) missing.push_back(verb);
  }
  co_return missing;
}

// Logs each missing permission once, until it is granted.
void PermissionCheck::log_changes(const RuntimeGroup& found) {
  for (const auto& permission : found.errors) {
    if (std::ranges::find(permissions_.errors, permission) != permissions_.errors.end()) continue;
    log_.warning("a permission in the cluster is missing", {{"reason", permission}});
  }
  const bool is_complete = found.errors.empty() && found.unknown.empty();
  if (is_complete && !permissions_.errors.empty()) log_.info("no permission is missing any more");
}

}  // namespace gitops::app_proxy
