#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "app-proxy/clusters/cluster_report.hpp"
#include "common/argo/argocd_client.hpp"
#include "common/control_plane/graphql.hpp"
#include "common/core/log.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// Tells the control plane of the clusters that Argo CD knows: those that have changed since they were told last, also
// by another replica or before a restart, in chunks. A cluster that Argo CD lists no more is told as removed when it has
// no Secret either; while the Secrets cannot be read, none is. What was acknowledged stands in a ConfigMap. Only the
// leader of several replicas tells, and it looks whether it still leads before each chunk; the ConfigMap's version tells
// when another one has told meanwhile. Loop thread; its parts outlive it.
class ClusterReporter {
 public:
  struct Options {
    std::string own_namespace = {};
    std::string runtime = {};
    std::size_t chunk_count = 50;  // clusters; 0: no limit
    std::size_t chunk_bytes = std::size_t{256} * 1024;
    Clock::duration period = std::chrono::seconds(5);
    Clock::duration timeout = std::chrono::seconds(15);
  };
  // `registration` names the present registration of the runtime; empty while there is none.
  ClusterReporter(const Executor& executor, k8s::Client& cluster, argo::ArgoCdClient& argocd,
                  control_plane::GraphqlClient& control_plane, std::function<bool()> is_leader,
                  std::function<std::string()> registration, Options options);

  // Runs until the group is cancelled.
  void start(TaskGroup& group);
  // Looks soon instead of at the end of its period.
  void wake() { woken_.notify_all(); }
  // One round. Fails with why something was not told.
  Task<Result<void>> round();
  // Why the last round failed; empty: all is told.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  // The clusters that Argo CD could not reach, as of the last round. An error: its list is not known.
  [[nodiscard]] const Result<std::vector<control_plane::ClusterState>>& unreachable() const {
    return unreachable_;
  }

 private:
  Task<Result<std::vector<control_plane::ClusterState>>> removed_clusters(
      std::vector<control_plane::ClusterState> gone, Deadline deadline);
  Task<Result<void>> tell(std::vector<control_plane::ClusterState> chunk, ClusterRecord& record,
                          std::string& stored, Deadline deadline);
  Task<Result<void>> store(const ClusterRecord& record, std::string& stored, Deadline deadline);

  k8s::Client& cluster_;
  argo::ArgoCdClient& argocd_;
  control_plane::GraphqlClient& control_plane_;
  std::function<bool()> is_leader_;
  std::function<std::string()> registration_;
  Options options_;
  Event woken_;
  std::string trouble_ = "not looked yet";
  Result<std::vector<control_plane::ClusterState>> unreachable_ =
      fail(ErrorCode::unavailable, "not looked yet");
  Log log_{"cluster-report"};
};

}  // namespace gitops::app_proxy
