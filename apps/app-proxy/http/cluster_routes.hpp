#pragma once

#include "app-proxy/clusters/managed_clusters.hpp"
#include "app-proxy/http/request_gate.hpp"
#include "app-proxy/users/audit.hpp"
#include "common/http/server.hpp"

namespace gitops::app_proxy {

// Serves POST /api/clusters. The add-cluster Job sends it with the key of its user, who must be an
// administrator. A line of the audit stream names the user and the cluster. `clusters` is null
// while the runtime has no access to its own cluster. Loop thread only; the arguments outlive it.
Task<> serve_cluster(http::Exchange& exchange, RequestGate& gate, Audit& audit,
                     ManagedClusters* clusters, const std::string& runtime);

}  // namespace gitops::app_proxy
