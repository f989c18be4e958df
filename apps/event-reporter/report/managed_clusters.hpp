#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/daemon/daemon.hpp"
#include "event-reporter/event/digest.hpp"
#include "event-reporter/report/resource_reporter.hpp"
#include "k8s-client/cluster_secret.hpp"
#include "k8s-client/informer.hpp"

namespace gitops::reporter {

// Makes the reporter watch the managed clusters of Argo CD: those of its cluster Secrets in the own
// namespace. Of several Secrets for one server the first by name counts. The runtime's own cluster is
// left out, since it is always watched. A cluster with an unusable Secret is skipped, as the log and
// status() show; its objects stay in the ledger.
//
// Secrets are found by Argo CD's label, which needs the permissions to list and watch every Secret of the
// namespace, or by their names, which needs these permissions for the named ones only.
//
// Loop thread only; the arguments outlive it.
class ManagedClusters {
 public:
  using MakeClient = std::function<std::shared_ptr<k8s::Client>(k8s::ClusterConfig)>;
  // `names` are those of the Secrets; empty: all that have the label.
  ManagedClusters(const Executor& executor, k8s::Client& kubernetes, const std::string& ns,
                  const std::vector<std::string>& names, ResourceReporter& reporter,
                  MakeClient make_client, Metrics& metrics, k8s::Reflector::Options reflector = {});

  // Starts the tasks; call it after the reporter's start().
  void start(TaskGroup& group);
  [[nodiscard]] ReadyCheck ready_check() const;
  // Returns the entry of /statusz, including the skipped clusters and the reasons.
  [[nodiscard]] StatusEntry status() const;

 private:
  struct Entry {
    Digest digest{};  // digest of the Secret's data
    k8s::ClusterSecret secret;
  };
  void on_change(const k8s::Change& change);
  void apply();
  [[nodiscard]] std::set<std::string> servers() const;
  Task<> forget_missing();
  void forget_unless_it_returns(const std::string& server);
  Task<> forget_later(std::string server);

  k8s::Client& kubernetes_;
  ResourceReporter& reporter_;
  MakeClient make_client_;
  TaskGroup* group_ = nullptr;  // set by start()
  Log log_{"clusters"};
  std::map<std::string, Entry> entries_;   // by the Secret's name
  std::map<std::string, Digest> watched_;  // by server
  // One informer for all Secrets with the label, or one for each name.
  std::vector<std::unique_ptr<k8s::Informer>> informers_;
  std::vector<k8s::Informer::Subscription> changes_;
  Gauge& skipped_;
};

}  // namespace gitops::reporter
