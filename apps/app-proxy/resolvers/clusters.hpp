#pragma once

#include "app-proxy/clusters/managed_clusters.hpp"
#include "common/graphql/resolvers.hpp"

namespace gitops::app_proxy {

// Resolves removeCluster: removes a cluster of this runtime by the URL of its API server.
Task<Result<void>> remove_cluster(ManagedClusters& clusters, const RuntimeFiles& files,
                                  graphql::Call& call);

}  // namespace gitops::app_proxy
