#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app-proxy/argo_parts.hpp"
#include "app-proxy/cluster_parts.hpp"
#include "app-proxy/clusters/cluster_reporter.hpp"
#include "app-proxy/clusters/managed_clusters.hpp"
#include "app-proxy/config.hpp"
#include "app-proxy/control_plane_parts.hpp"
#include "app-proxy/git_parts.hpp"
#include "app-proxy/runtime/group_reader.hpp"
#include "app-proxy/runtime/permission_check.hpp"
#include "app-proxy/runtime/runtime_registration.hpp"
#include "app-proxy/sealing/sealing_keys.hpp"
#include "common/core/task_group.hpp"
#include "common/daemon/daemon.hpp"
#include "common/net/resolve.hpp"

namespace gitops::app_proxy {

// Work of the runtime in its cluster without a request: it registers itself, reports its state and
// its clusters, and shares its sealing key. Starts at once. Loop thread; the arguments outlive it.
class RuntimeParts {
 public:
  RuntimeParts(const DaemonContext& context, const Config& config, ControlPlaneParts& control_plane,
               ClusterParts& cluster, ArgoParts& argo, GitParts& git);

  Task<> stop();

  [[nodiscard]] ManagedClusters& clusters() { return clusters_; }
  [[nodiscard]] SealingKeys& sealing_keys() { return sealing_keys_; }
  // Entries for /statusz.
  [[nodiscard]] StatusReport status();

 private:
  void start_registration(const DaemonContext& context, const Config& config);
  [[nodiscard]] StatusReport registration_status();
  [[nodiscard]] RuntimeFacts facts();
  // State of the runtime in groups.
  [[nodiscard]] std::vector<RuntimeGroup> groups(const RuntimeFacts& facts,
                                                 std::string control_plane_error);

  ControlPlaneParts& control_plane_;
  ClusterParts& cluster_;
  ArgoParts& argo_;
  GitParts& git_;
  net::Resolver cluster_names_;  // of clusters that users add
  ManagedClusters clusters_;
  SealingKeys sealing_keys_;
  PermissionCheck permission_check_;
  // Set while the runtime registers itself.
  std::optional<GroupReader> group_reader_;
  std::optional<ClusterReporter> cluster_reporter_;  // only with Argo CD
  std::optional<RuntimeRegistration> life_;
  TaskGroup tasks_;
};

}  // namespace gitops::app_proxy
