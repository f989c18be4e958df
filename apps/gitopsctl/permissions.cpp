#include "gitopsctl/permissions.hpp"

#include <tuple>
#include <utility>

#include "common/core/text.hpp"

namespace gitops::ctl {

namespace {

constexpr const char* kAppReporter = "runtime-event-reporter";
constexpr const char* kResourceReporter = "cluster-event-reporter";
constexpr const char* kAppProxy = "cap-app-proxy";
constexpr const char* kImageReports = "cap-app-proxy-enrichment";
constexpr const char* kArgo = "argoproj.io";
constexpr const char* kLeases = "coordination.k8s.io";
const std::vector<std::string> kRead = {"get", "list", "watch"};

// Adds the Leases by which the replicas of a reporter divide its work.
void add_leases(std::vector<Permission>& permissions, const std::string& daemon,
                const std::string& mode, std::int64_t replicas) {
  const std::string prefix = "event-reporter-" + mode + "-";
  std::vector<std::string> names = {prefix + "layout"};
  if (replicas > 1) {
    permissions.push_back({.daemon = daemon,
                           .group = kLeases,
                           .resource = "leases",
                           .verbs = {"create", "list"},
                           .purpose = "take over the shard of a replica that died"});
    for (std::int64_t i = 0; i < replicas; ++i) names.push_back(prefix + std::to_string(i));
  }
  permissions.push_back({.daemon = daemon,
                         .group = kLeases,
                         .resource = "leases",
                         .verbs = {"get", "update"},
                         .names = names,
                         .purpose = "know how many replicas there are"});
}

// Adds the permissions for the resources that our reporter of Rollouts and Workflows watches.
void add_resource_reporter(std::vector<Permission>& permissions, const Installation& installation) {
  if (installation.managed_clusters) {
    permissions.push_back({.daemon = kResourceReporter,
                           .group = "",
                           .resource = "secrets",
                           .verbs = {"list", "watch"},
                           .names = installation.cluster_secrets,
                           .purpose = "reach the clusters that Argo CD manages"});
  }
  add_leases(permissions, kResourceReporter, "resource", installation.replicas);
  for (const auto& [group, resource, what] :
       {std::tuple{kArgo, "rollouts", "report Rollouts"},
        std::tuple{kArgo, "analysisruns", "report AnalysisRuns"},
        std::tuple{"apps", "replicasets", "report the ReplicaSets of Rollouts"}}) {
    permissions.push_back({.daemon = kResourceReporter,
                           .group = group,
                           .resource = resource,
                           .verbs = kRead,
                           .everywhere = !installation.single_namespace,
                           .purpose = what});
  }
  permissions.push_back({.daemon = kResourceReporter,
                         .group = kArgo,
                         .resource = "workflows",
                         .verbs = kRead,
                         .purpose = "report Workflows"});
  if (installation.workflows_everywhere && !installation.single_namespace) {
    permissions.push_back({.daemon = kResourceReporter,
                           .group = kArgo,
                           .resource = "workflows",
                           .verbs = kRead,
                           .everywhere = true,
                           .purpose = "report Workflows of further namespaces"});
  }
}

// Adds the permissions for the resources that EventSources of Argo Events watch. A watch begins
// with a list, and needs no get.
void add_argo_events(std::vector<Permission>& permissions, bool everywhere) {
  const auto add = [&](const char* daemon, const char* group, const char* resource, bool all,
                       const char* purpose) {
    permissions.push_back({.daemon = daemon,
                           .group = group,
                           .resource = resource,
                           .verbs = {"list", "watch"},
                           .everywhere = all,
                           .purpose = purpose});
  };
  constexpr const char* kRollouts = "rollout-reporter";
  add(kRollouts, kArgo, "rollouts", everywhere, "report Rollouts");
  add(kRollouts, kArgo, "analysisruns", everywhere, "report AnalysisRuns");
  add(kRollouts, "apps", "replicasets", everywhere, "report the ReplicaSets of Rollouts");
  add("workflow-reporter", kArgo, "workflows", false, "report Workflows");
}

// Adds the permissions for user actions on objects of Argo.
void add_actions(std::vector<Permission>& permissions, bool everywhere) {
  const auto add = [&](const char* group, const char* resource, std::vector<std::string> verbs,
                       const char* purpose) {
    permissions.push_back({.daemon = kAppProxy,
                           .group = group,
                           .resource = resource,
                           .verbs = std::move(verbs),
                           .everywhere = everywhere,
                           .purpose = purpose});
  };
  add(kArgo, "analysisruns", {"get", "patch"}, "end AnalysisRuns");
  add(kArgo, "experiments", {"get", "patch"}, "end Experiments");
  add(kArgo, "rollouts", {"get", "patch"}, "act on Rollouts");
  add(kArgo, "rollouts/status", {"patch"}, "act on Rollouts");
  add("apps", "replicasets", {"get", "list", "patch"}, "roll Rollouts back");
  add("apps", "deployments", {"get", "patch"}, "roll back Rollouts that refer to Deployments");
  add("", "podtemplates", {"get", "patch"}, "roll back Rollouts that refer to PodTemplates");
  add(kArgo, "workflows", {"create", "delete", "get", "patch", "update", "watch"},
      "act on Workflows");
  add(kArgo, "workflowtemplates", {"get"}, "submit Workflows");
  add("", "pods", {"delete", "get", "list", "watch"}, "retry Workflows, read their logs");
  add("", "pods/log", {"get"}, "read the logs of Workflows");
  add("", "events", {"watch"}, "show the events of pods");
}

}  // namespace

std::vector<Permission> permissions_of_runtime(const Installation& installation) {
  std::vector<Permission> permissions;
  permissions.push_back({.daemon = kAppReporter,
                         .group = "",
                         .resource = "configmaps",
                         .verbs = {"get"},
                         .names = {"argocd-cm"},
                         .purpose = "know how Argo CD tracks resources"});
  if (!installation.argocd_token_secret.empty()) {
    permissions.push_back({.daemon = kAppReporter,
                           .group = "",
                           .resource = "secrets",
                           .verbs = {"get"},
                           .names = {installation.argocd_token_secret},
                           .purpose = "ask Argo CD"});
  }
  add_leases(permissions, kAppReporter, "app", installation.replicas);
  permissions.push_back(
      {.daemon = kAppReporter,
       .group = kArgo,
       .resource = "applications",
       .verbs = kRead,
       .everywhere = installation.applications_everywhere && !installation.single_namespace,
       .purpose = "report Applications"});

  if (installation.argo_events) {
    add_argo_events(permissions, !installation.single_namespace);
  } else {
    add_resource_reporter(permissions, installation);
  }
  if (installation.app_proxy) {
    permissions.push_back({.daemon = kAppProxy,
                           .group = "",
                           .resource = "secrets",
                           .verbs = {"create", "delete", "get", "list", "update"},
                           .purpose = "keep Git integrations"});
    permissions.push_back({.daemon = kAppProxy,
                           .group = "",
                           .resource = "pods",
                           .verbs = {"list"},
                           .purpose = "find the runtime's components"});
    permissions.push_back({.daemon = kAppProxy,
                           .group = "",
                           .resource = "pods/log",
                           .verbs = {"get"},
                           .purpose = "read the logs of the runtime's components"});
  }
  if (installation.app_proxy && installation.git_credentials) {
    permissions.push_back({.daemon = kAppProxy,
                           .group = kArgo,
                           .resource = "applications",
                           .verbs = {"create", "delete", "get", "patch"},
                           .purpose = "apply the shared configuration repository"});
  }
  if (installation.app_proxy && installation.registration) {
    permissions.push_back({.daemon = kAppProxy,
                           .group = kLeases,
                           .resource = "leases",
                           .verbs = {"create"},
                           .purpose = "register the runtime once"});
    permissions.push_back({.daemon = kAppProxy,
                           .group = kLeases,
                           .resource = "leases",
                           .verbs = {"get", "update"},
                           .names = {kAppProxy},
                           .purpose = "register the runtime once"});
    permissions.push_back({.daemon = kAppProxy,
                           .group = "",
                           .resource = "configmaps",
                           .verbs = {"create"},
                           .purpose = "report clusters once"});
    permissions.push_back({.daemon = kAppProxy,
                           .group = "",
                           .resource = "configmaps",
                           .verbs = {"get", "update"},
                           .names = {"cap-app-proxy-clusters"},
                           .purpose = "report clusters once"});
  }
  if (installation.app_proxy && installation.image_reports) {
    permissions.push_back({.daemon = kAppProxy,
                           .group = kArgo,
                           .resource = "workflows",
                           .verbs = {"create", "delete", "get"},
                           .purpose = "report images"});
    permissions.push_back({.daemon = kAppProxy,
                           .group = "",
                           .resource = "configmaps",
                           .verbs = {"get"},
                           .purpose = "read the integrations that reports of images name"});
    permissions.push_back({.daemon = kImageReports,
                           .group = kArgo,
                           .resource = "workflowtaskresults",
                           .verbs = {"create", "patch"},
                           .purpose = "tell what the tasks of an image's report have put out"});
  }
  if (installation.app_proxy && installation.app_proxy_actions) {
    add_actions(permissions, !installation.single_namespace);
  }
  if (!installation.daemon.empty()) {
    std::erase_if(permissions, [&](const Permission& permission) {
      return permission.daemon != installation.daemon;
    });
  }
  return permissions;
}

std::string describe(const Permission& permission, const std::string& ns) {
  std::string text = join(permission.verbs, ", ") + " " + permission.resource;
  if (!permission.group.empty()) text += "." + permission.group;
  if (!permission.names.empty()) text += " " + join(permission.names, ", ");
  return text + (permission.everywhere ? " in all namespaces" : " in namespace " + ns);
}

}  // namespace gitops::ctl
