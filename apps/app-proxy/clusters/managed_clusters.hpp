#pragma once

#include <set>
#include <string>

#include "app-proxy/clusters/added_cluster.hpp"
#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/entities/runtime_git_token.hpp"
#include "app-proxy/git/committer.hpp"
#include "common/argo/argocd_client.hpp"
#include "common/core/log.hpp"
#include "common/net/resolve.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// The clusters, besides its own, that a runtime deploys to. Each is a Secret of Argo CD in the
// runtime's namespace and an Application in the shared configuration repository that applies the
// resources of every cluster. These files belong to the runtime, which commits them with its own
// Git token. Opens no connection to a managed cluster. Loop thread; its parts outlive it.
class ManagedClusters {
 public:
  struct Options {
    std::string own_namespace = {};
    net::AddressList special_addresses = {};  // allowed in spite of special use
    // Time limit for Argo CD to remove its objects from a cluster that is being removed.
    Clock::duration settling = std::chrono::seconds(30);
    Clock::duration poll = std::chrono::milliseconds(500);
  };
  // `names` resolves the hosts of added clusters. `committer` may be null; then no files are
  // committed. `argocd` is null when it is not configured.
  ManagedClusters(const Executor& executor, k8s::Client& cluster, argo::ArgoCdClient* argocd,
                  net::Resolver& names, Committer* committer, const RuntimeFiles& files,
                  RuntimeGitToken& token, Options options);

  // Notified when a cluster was added or removed.
  [[nodiscard]] Event& changed() { return changed_; }

  // Parses the body of a request. `invalid_argument` when it is refused.
  [[nodiscard]] Result<AddedCluster> parse(std::string_view body) const;
  // Adds a cluster, or replaces the one of that server or name. `requested_by` is a sentence for
  // the commit. Errors: `invalid_argument`, also for a host that resolves to an address of special
  // use; `conflict`, when another cluster or a Git source has the name, or the cluster is being
  // removed (nothing was changed). A host that does not resolve is accepted, since Argo CD resolves
  // it when it connects.
  Task<Result<void>> add(AddedCluster cluster, std::string requested_by, Deadline deadline);
  // Checks that Argo CD can deploy to the cluster with this URL of its API server. `not_found` when
  // it is neither the runtime's own, nor in Argo CD's list, nor in a Secret: the list leaves out
  // what the runtime's account may not get. A list that cannot be read refuses nothing.
  Task<Result<void>> look_for(std::string server, Deadline deadline);
  // Removes the cluster with this URL of its API server. Its file and that of its installation of
  // Argo Rollouts are removed first, so that Argo CD can still clean up. `not_found` when there is
  // no such cluster; `conflict` when it was changed meanwhile, and stays.
  Task<Result<void>> remove(std::string server, std::string requested_by, Deadline deadline);

 private:
  Task<Result<void>> check_addresses(std::string server);
  // Returns true when there was something to commit.
  Task<Result<bool>> commit(std::vector<FileChange> changes, std::string message,
                            std::string requested_by, Deadline deadline);
  Task<> settle(std::string name, std::string server, Deadline deadline);
  [[nodiscard]] bool has_files() const;

  k8s::Client& cluster_;
  argo::ArgoCdClient* argocd_;
  net::Resolver& names_;
  Committer* committer_;
  const RuntimeFiles& files_;
  RuntimeGitToken& token_;
  Event changed_;
  Options options_;
  std::multiset<std::string> removing_;  // Secrets of the clusters that are being removed
  Log log_{"clusters"};
};

// Lists the clusters that have a Secret in this namespace.
Task<Result<std::vector<KnownCluster>>> known_clusters(k8s::Client& cluster, std::string ns,
                                                       Deadline deadline);

}  // namespace gitops::app_proxy
