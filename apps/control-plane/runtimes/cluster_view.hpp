#pragma once

#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "control-plane/runtimes/runtime_store.hpp"

namespace gitops::control_plane_server {

// The JSON of the GraphQL type Cluster. Members that the type asks for are there, whatever the stored text lacks.
std::string cluster_json(const ClusterRow& cluster, std::string_view account_id);

// A page's position behind this cluster, as one text, and back. Names and URLs have no line ends.
std::string cluster_key(const ClusterRow& cluster);
// The fields after_* of the query. invalid_argument: a text that cluster_key() did not make.
Result<ClusterQuery> query_after(std::string_view key);

// What a list of ClusterUpsertArgs says: clusters to store, and those that the runtime has removed. There is no field for
// a removal: app-proxy tells it by the text control_plane::kClusterRemoved in the state Unknown.
//
// invalid_argument: a cluster of another runtime, or a malformed name or server.
Result<ClusterReport> read_cluster_report(std::string_view clusters, std::string_view runtime);

}  // namespace gitops::control_plane_server
