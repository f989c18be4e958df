#pragma once

#include <string>

#include "app-proxy/clusters/added_cluster.hpp"
#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/entities/runtime_git_token.hpp"
#include "app-proxy/git/committer.hpp"
#include "common/core/log.hpp"
#include "common/net/resolve.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// The clusters besides its own that a runtime deploys to. Each is a Secret of Argo CD in the runtime's namespace and
// an Application in the shared configuration repository, which applies what concerns every cluster; these files are
// the runtime's, and it commits them by its own Git token. Nothing here connects to a managed cluster. Loop thread; its
// parts outlive it.
class ManagedClusters {
 public:
  struct Options {
    std::string own_namespace = {};
    net::AddressList special_addresses = {};  // of those that are refused otherwise
    // For how long a removal waits until Argo CD has removed what it had applied to the cluster.
    Clock::duration settling = std::chrono::seconds(30);
    Clock::duration poll = std::chrono::milliseconds(500);
  };
  // `names` looks up the hosts of added clusters. `committer` may be null: then there are no files.
  ManagedClusters(const Executor& executor, k8s::Client& cluster, net::Resolver& names,
                  Committer* committer, const RuntimeFiles& files, RuntimeGitToken& token,
                  Options options);

  // Notified when a cluster was added or removed.
  [[nodiscard]] Event& changed() { return changed_; }

  // From the body of a request. A cluster of that server or name is replaced. `invalid_argument` for what is refused.
  [[nodiscard]] Result<AddedCluster> parse(std::string_view body) const;
  // `requested_by`: a sentence for the commit. `invalid_argument`, too, for a host whose name leads to an address of
  // special use. A name that cannot be looked up here passes: Argo CD looks it up when it connects. `conflict`: another
  // cluster or a Git source has the name; then nothing was changed.
  Task<Result<void>> add(AddedCluster cluster, std::string requested_by, Deadline deadline);
  // By the URL of its API server. Its file goes first, so that Argo CD can still clean up. `not_found` when there is no
  // such cluster.
  Task<Result<void>> remove(std::string server, std::string requested_by, Deadline deadline);

 private:
  Task<Result<void>> check_addresses(std::string server);
  // True when there was something to commit.
  Task<Result<bool>> commit(std::vector<FileChange> changes, std::string message,
                            std::string requested_by, Deadline deadline);
  Task<> settle(std::string name, Deadline deadline);
  [[nodiscard]] bool has_files() const;

  k8s::Client& cluster_;
  net::Resolver& names_;
  Committer* committer_;
  const RuntimeFiles& files_;
  RuntimeGitToken& token_;
  Event changed_;
  Options options_;
  Log log_{"clusters"};
};

// The clusters that have a Secret in this namespace.
Task<Result<std::vector<KnownCluster>>> known_clusters(k8s::Client& cluster, std::string ns,
                                                       Deadline deadline);

}  // namespace gitops::app_proxy
