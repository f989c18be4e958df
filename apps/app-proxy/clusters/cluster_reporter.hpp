#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "app-proxy/clusters/cluster_report.hpp"
#include "app-proxy/identity/leadership.hpp"
#include "app-proxy/identity/runtime_identity.hpp"
#include "common/argo/argocd_client.hpp"
#include "common/control_plane/graphql.hpp"
#include "common/core/log.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// Reports the clusters that Argo CD knows to the control plane, in chunks: those whose state has changed since the last
// report, which may have been made by another replica or before a restart. A cluster that Argo CD no longer lists is
// reported as removed only when its Secret is gone, too; while the Secrets cannot be read, no cluster is. A ConfigMap
// records the states that the control plane has acknowledged. Only the leader of several replicas reports. It checks
// before each chunk that it still leads, and the version of the ConfigMap shows whether another replica has reported in
// the meantime. Loop thread; its dependencies outlive it.
class ClusterReporter {
 public:
  struct Options {
    std::string own_namespace = {};
    std::string runtime = {};
    std::size_t chunk_count;  // clusters; 0: no limit
    std::size_t chunk_bytes = std::size_t{256} * 1024;
    Clock::duration period = std::chrono::seconds(5);
    Clock::duration timeout = std::chrono::seconds(15);
  };
  // `clusters_changed` starts a round before the end of the period.
  ClusterReporter(k8s::Client& cluster, argo::ArgoCdClient& argocd,
                  control_plane::GraphqlClient& control_plane, Leadership& leadership,
                  RuntimeIdentity& runtime, Event& clusters_changed, Options options);

  // Runs until the group is cancelled.
  void start(TaskGroup& group);
  // Runs one round. The error says why a change was not reported.
  Task<Result<void>> round();
  // Error of the last round; empty when every change is reported.
  [[nodiscard]] const std::string& last_error() const { return last_error_; }
  // Entry for /statusz.
  [[nodiscard]] StatusEntry status() const;
  // Clusters that Argo CD could not reach in the last round; an error when Argo CD's list is
  // unknown.
  [[nodiscard]] const Result<std::vector<control_plane::ClusterState>>& unreachable() const {
    return unreachable_;
  }

 private:
  static constexpr const char* kNotCheckedYet = "not checked yet";

  Task<Result<std::vector<control_plane::ClusterState>>> removed_clusters(
      std::vector<control_plane::ClusterState> gone, Deadline deadline);
  Task<Result<void>> report_chunk(std::vector<control_plane::ClusterState> chunk,
                                  ClusterRecord& record, std::string& stored, Deadline deadline);
  // The present registration of the runtime; empty while there is none.
  [[nodiscard]] std::string registration() const;
  Task<Result<void>> store(const ClusterRecord& record, std::string& stored, Deadline deadline);

  k8s::Client& cluster_;
  argo::ArgoCdClient& argocd_;
  control_plane::GraphqlClient& control_plane_;
  Leadership& leadership_;
  RuntimeIdentity& runtime_;
  Event& clusters_changed_;
  Options options_;
  std::string last_error_ = kNotCheckedYet;
  Result<std::vector<control_plane::ClusterState>> unreachable_ =
      fail(ErrorCode::unavailable, kNotCheckedYet);
  Log log_{"cluster-report"};
};

}  // namespace gitops::app_proxy
