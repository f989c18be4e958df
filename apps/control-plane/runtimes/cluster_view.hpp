#pragma once

#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "control-plane/runtimes/runtime_store.hpp"

namespace gitops::control_plane_server {

// Returns the JSON of the GraphQL type Cluster. Required members are present even when the stored text lacks them.
std::string cluster_json(const ClusterRow& cluster, std::string_view account_id);

// Returns the position of a page after this cluster, as one text. Names and URLs have no line ends.
std::string cluster_key(const ClusterRow& cluster);
// Parses a text of cluster_key() into the fields after_* of the query. invalid_argument: another text.
Result<ClusterQuery> query_after(std::string_view key);

// Reads a list of ClusterUpsertArgs: clusters to store, and clusters that the runtime has removed. The type has no
// field for a removal: app-proxy reports it by the text control_plane::kClusterRemoved in the state Unknown.
//
// invalid_argument: a cluster of another runtime, or a malformed name or server.
Result<ClusterReport> read_cluster_report(std::string_view clusters, std::string_view runtime);

}  // namespace gitops::control_plane_server
