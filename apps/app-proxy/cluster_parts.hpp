#pragma once

#include "app-proxy/config.hpp"
#include "app-proxy/control_plane_parts.hpp"
#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/identity/leadership.hpp"
#include "common/core/task_group.hpp"
#include "common/daemon/daemon.hpp"
#include "common/http/client.hpp"
#include "common/net/resolve.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// Configured files of the runtime. Their namespace is empty; it comes from the cluster.
RuntimeFiles runtime_files(const Config& config, const UserDirectory& users);

// Client of the runtime's cluster, and the leader among the replicas there. Starts at once. Loop
// thread; `names` and `control_plane` outlive it.
struct ClusterParts {
  ClusterParts(const DaemonContext& context, const Config& config, net::Resolver& names,
               const http::ProxySettings& proxy, ControlPlaneParts& control_plane,
               k8s::ClusterConfig cluster);

  // Releases the Lease.
  Task<> stop();

  RuntimeFiles files;
  k8s::Client client;
  bool is_registering;    // a user token is configured, so the runtime registers itself
  Leadership leadership;  // by a Lease if the runtime registers itself
  TaskGroup tasks;
};

}  // namespace gitops::app_proxy
