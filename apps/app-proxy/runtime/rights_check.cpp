#include "app-proxy/runtime/rights_check.hpp"

#include <algorithm>
#include <utility>

#include "common/core/text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr const char* kArgo = "argoproj.io";
constexpr const char* kLeases = "coordination.k8s.io";

// What users do with objects of Argo.
void add_actions(std::vector<NeededRight>& rights) {
  const auto add = [&](const char* group, const char* resource, std::vector<std::string> verbs,
                       const char* without, const char* subresource = "") {
    rights.push_back({.group = group,
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

// By which one of several replicas registers the runtime and reports its clusters.
void add_registration(std::vector<NeededRight>& rights) {
  constexpr const char* kNoRegistration = "the runtime is not registered, and nothing is reported";
  constexpr const char* kNoClusters = "clusters are not reported";
  rights.push_back(
      {.group = kLeases, .resource = "leases", .verbs = {"create"}, .without = kNoRegistration});
  rights.push_back({.group = kLeases,
                    .resource = "leases",
                    .verbs = {"get", "update"},
                    .name = "cap-app-proxy",
                    .without = kNoRegistration});
  rights.push_back(
      {.group = "", .resource = "configmaps", .verbs = {"create"}, .without = kNoClusters});
  rights.push_back({.group = "",
                    .resource = "configmaps",
                    .verbs = {"get", "update"},
                    .name = "cap-app-proxy-clusters",
                    .without = kNoClusters});
}

}  // namespace

std::vector<NeededRight> needed_rights(const RightsSettings& settings) {
  std::vector<NeededRight> rights{
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
    rights.push_back({.group = kArgo,
                      .resource = "applications",
                      .verbs = {"create", "delete", "get", "patch"},
                      .without = "the shared configuration repository is not applied"});
  }
  if (settings.has_user_token) add_registration(rights);
  if (settings.has_image_reports) {
    rights.push_back({.group = kArgo,
                      .resource = "workflows",
                      .verbs = {"create", "delete", "get"},
                      .without = "images are not reported"});
    rights.push_back({.group = "",
                      .resource = "configmaps",
                      .verbs = {"get"},
                      .without = "reports of images cannot name integrations"});
  }
  if (settings.has_actions) add_actions(rights);
  return rights;
}

std::string describe(const NeededRight& right, const std::vector<std::string>& verbs,
                     const std::string& ns) {
  std::string text = join(verbs, ", ") + " " + right.resource;
  if (!right.subresource.empty()) text += "/" + right.subresource;
  if (!right.group.empty()) text += "." + right.group;
  if (!right.name.empty()) text += " " + right.name;
  return text + (right.everywhere ? " in all namespaces" : " in namespace " + ns);
}

RightsCheck::RightsCheck(k8s::Client& cluster, std::function<RightsSettings()> settings,
                         Options options)
    : cluster_(cluster), settings_(std::move(settings)), options_(std::move(options)) {}

void RightsCheck::start(TaskGroup& group) {
  group.spawn("rights", [this]() -> Task<> {
    co_await sleep_for(options_.first_pause);
    while (true) {
      const bool is_complete = co_await round();
      co_await sleep_for(is_complete ? options_.period : options_.retry);
    }
  });
}

Task<bool> RightsCheck::round() {
  RuntimeGroup found{.name = rights_.name};
  const auto needed = needed_rights(settings_());
  for (const auto& right : needed) {
    const auto missing = co_await ask(right);
    if (!missing) {
      // An API server that cannot be asked makes no right missing.
      found.unknown = missing.error().message;
      break;
    }
    if (missing->empty()) continue;
    found.errors.push_back("app-proxy may not " +
                           describe(right, *missing, options_.own_namespace) + ": " +
                           right.without);
  }
  log_changes(found);
  rights_ = std::move(found);
  co_return rights_.errors.empty() && rights_.unknown.empty();
}

Task<Result<std::vector<std::string>>> RightsCheck::ask(const NeededRight& right) {
  std::vector<std::string> missing;
  for (const auto& verb : right.verbs) {
    k8s::Client::Access access{.verb = verb,
                               .group = right.group,
                               .resource = right.resource,
                               .subresource = right.subresource,
                               .ns = right.everywhere ? std::string() : options_.own_namespace,
                               .name = right.name};
    auto allowed = co_await cluster_.can_i(access, deadline_after(options_.timeout));
    if (allowed && !*allowed && right.everywhere) {
      // A runtime that is confined to its namespace has the right there.
      access.ns = options_.own_namespace;
      allowed = co_await cluster_.can_i(std::move(access), deadline_after(options_.timeout));
    }
    if (!allowed) co_return std::unexpected(std::move(allowed.error()));
    if (!*allowed) missing.push_back(verb);
  }
  co_return missing;
}

// Each missing right once, until it is there.
void RightsCheck::log_changes(const RuntimeGroup& found) {
  for (const auto& right : found.errors) {
    if (std::ranges::find(rights_.errors, right) != rights_.errors.end()) continue;
    log_.warning("a right in the cluster is missing", {{"reason", right}});
  }
  const bool is_complete = found.errors.empty() && found.unknown.empty();
  if (is_complete && !rights_.errors.empty()) log_.info("no right is missing any more");
}

}  // namespace gitops::app_proxy
