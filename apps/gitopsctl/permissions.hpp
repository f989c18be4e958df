#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gitops::ctl {

// The chart values that decide which permissions the daemons of a runtime get. Defaults as in the chart.
struct Installation {
  bool single_namespace = false;        // global.runtime.singleNamespace
  bool applications_everywhere = true;  // false: application.namespaces of Argo CD is empty
  bool workflows_everywhere = false;    // workflow.namespaces of cluster-event-reporter is set
  bool managed_clusters = false;        // managedClusters of cluster-event-reporter
  std::vector<std::string> cluster_secrets = {};  // clusterSecrets of cluster-event-reporter
  bool argo_events = false;  // cluster-event-reporter has form argo-events: its accounts instead
  bool app_proxy = false;    // app-proxy.enabled
  bool app_proxy_actions = false;  // app-proxy.actions.enabled
  bool image_reports = false;      // app-proxy.image-enrichment.enabled
  bool git_credentials = false;    // global.runtime.gitCredentials.password is set
  bool registration = false;       // global.codefresh.userToken is set
  std::int64_t replicas = 1;       // replicaCount of both reporters
  std::string argocd_token_secret = "argocd-token";
  std::string daemon = {};  // in the chart's spelling; empty: all
};

// One rule of a Role (the runtime's namespace) or of a ClusterRole (all namespaces).
struct Permission {
  std::string daemon;  // workload, in the chart's spelling
  std::string group;   // of the API; empty for the core group
  std::string resource;
  std::vector<std::string> verbs;
  std::vector<std::string> names = {};  // of the objects; empty: all
  bool everywhere = false;
  std::string purpose;  // the daemon's use of it: "report Applications"
};

// The permissions that charts/gitops-runtime grants to each daemon, in its order. A test compares them
// with the rendered chart.
std::vector<Permission> permissions_of_runtime(const Installation& installation);

// Returns a text such as "get, list, watch applications.argoproj.io in all namespaces". `ns` is the
// runtime's namespace.
std::string describe(const Permission& permission, const std::string& ns);

}  // namespace gitops::ctl
