#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/control_plane/graphql.hpp"
#include "common/core/error.hpp"

// What the control plane is told of the runtime's clusters. Pure.
namespace gitops::app_proxy {

// The clusters of Argo CD's list (GET /api/v1/clusters); ones without a server are left out. `invalid_data` when it is
// no list.
Result<std::vector<control_plane::ClusterState>> parse_clusters(std::string_view list);

// The digests of the states that the control plane has acknowledged, by server. A digest leaves out times that change by
// themselves.
using ReportedClusters = std::map<std::string, std::string>;
// In place of a digest: the control plane may have been told of the cluster or not.
inline constexpr std::string_view kAboutToBeReported = "about to be told";
std::string digest_of(const control_plane::ClusterState& cluster);

struct DueClusters {
  std::vector<control_plane::ClusterState> changed = {};
  // Told once and not in the list any more. Those that were removed are told a last time, as clusters in an unknown state,
  // since the control plane has no operation that removes one.
  std::vector<control_plane::ClusterState> gone = {};
};
// `names`: of the clusters that were told, by server.
DueClusters due_clusters(const std::vector<control_plane::ClusterState>& now,
                         const ReportedClusters& reported,
                         const std::map<std::string, std::string>& names);

// Of the `gone` ones, those that were removed: the others are among `servers`, which still have a Secret. Argo CD's list
// leaves out what its account may not see.
std::vector<control_plane::ClusterState> removed_of(std::vector<control_plane::ClusterState> gone,
                                                    const std::vector<std::string>& servers);

// At most `count` clusters (0: no limit) and about `bytes` bytes in each; a larger cluster stands alone.
std::vector<std::vector<control_plane::ClusterState>> in_chunks(
    std::vector<control_plane::ClusterState> clusters, std::size_t count, std::size_t bytes);

// The acknowledged states as a ConfigMap, which all replicas read.
struct ClusterRecord {
  std::string registration = {};  // of the runtime; another one has been told nothing
  ReportedClusters reported = {};
  std::map<std::string, std::string> names = {};  // by server

  bool operator==(const ClusterRecord&) const = default;
};
inline constexpr std::string_view kClusterRecord = "cap-app-proxy-clusters";
// An empty record for a text that is not one.
ClusterRecord read_cluster_record(std::string_view object);
// With `before`, the stored object, whose resourceVersion stays.
std::string cluster_record_object(std::string_view ns, const ClusterRecord& record,
                                  std::string_view before = {});

}  // namespace gitops::app_proxy
