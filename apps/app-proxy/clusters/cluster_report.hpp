#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/control_plane/graphql.hpp"
#include "common/core/error.hpp"

// Reports about the runtime's clusters for the control plane. Pure.
namespace gitops::app_proxy {

// Parses Argo CD's list of clusters (GET /api/v1/clusters); clusters without a server are left out.
// `invalid_data` when it is not a list.
Result<std::vector<control_plane::ClusterState>> parse_clusters(std::string_view list);

// Digests of the states that the control plane has acknowledged, by server. A digest leaves out
// times that change by themselves.
using ReportedClusters = std::map<std::string, std::string>;
// Placeholder for a digest while a report is in flight: the control plane may or may not know the
// cluster.
inline constexpr std::string_view kAboutToBeReported = "about to be told";
std::string digest_of(const control_plane::ClusterState& cluster);

struct DueClusters {
  std::vector<control_plane::ClusterState> changed = {};
  // Reported clusters that are no longer in the list. Removed ones are reported a last time, in an
  // unknown state, since the control plane has no operation that removes a cluster.
  std::vector<control_plane::ClusterState> gone = {};
};
// `names` holds the names of the reported clusters, by server.
DueClusters due_clusters(const std::vector<control_plane::ClusterState>& now,
                         const ReportedClusters& reported,
                         const std::map<std::string, std::string>& names);

// Returns the clusters of `gone` that were removed. The others are among `servers`, which still
// have a Secret: Argo CD's list leaves out clusters that its account may not see.
std::vector<control_plane::ClusterState> removed_of(std::vector<control_plane::ClusterState> gone,
                                                    const std::vector<std::string>& servers);

// Splits into chunks of at most `count` clusters (0: no limit) and about `bytes` bytes. A larger
// cluster is alone in its chunk.
std::vector<std::vector<control_plane::ClusterState>> in_chunks(
    std::vector<control_plane::ClusterState> clusters, std::size_t count, std::size_t bytes);

// The acknowledged states, stored in a ConfigMap that all replicas read.
struct ClusterRecord {
  std::string registration = {};  // registration of the runtime; the record is valid for it only
  ReportedClusters reported = {};
  std::map<std::string, std::string> names = {};  // by server

  bool operator==(const ClusterRecord&) const = default;
};
inline constexpr std::string_view kClusterRecord = "cap-app-proxy-clusters";
// Parses a record. Returns an empty record for a malformed text.
ClusterRecord read_cluster_record(std::string_view object);
// Returns the ConfigMap as JSON. `before` is the stored object; its resourceVersion is kept.
std::string cluster_record_object(std::string_view ns, const ClusterRecord& record,
                                  std::string_view before = {});

}  // namespace gitops::app_proxy
