#pragma once

#include <optional>
#include <string>

#include "app-proxy/cluster_parts.hpp"
#include "app-proxy/config.hpp"
#include "app-proxy/control_plane_parts.hpp"
#include "app-proxy/entities/runtime_git_token.hpp"
#include "app-proxy/git/clone_cache.hpp"
#include "app-proxy/git/committer.hpp"
#include "app-proxy/git/tree_reader.hpp"
#include "app-proxy/http/source_files.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "app-proxy/integrations/git_permissions.hpp"
#include "app-proxy/integrations/oauth_client.hpp"
#include "app-proxy/integrations/validity_check.hpp"
#include "app-proxy/promotions/promotions.hpp"
#include "app-proxy/runtime/config_repository_setup.hpp"
#include "common/core/log.hpp"
#include "common/core/task_group.hpp"
#include "common/core/worker_pool.hpp"
#include "common/daemon/daemon.hpp"
#include "common/http/client.hpp"
#include "common/net/resolve.hpp"

namespace gitops::app_proxy {

// Parts that work with Git: integrations of users with Git hosts, and commits. They need a cluster,
// since Secrets hold the integrations. Starts at once. Loop thread; the arguments outlive it.
class GitParts {
 public:
  GitParts(const DaemonContext& context, const Config& config, net::Resolver& names,
           const http::ProxySettings& proxy, ControlPlaneParts& control_plane,
           ClusterParts& cluster);

  // Waits for the commits in flight.
  Task<> stop();

  [[nodiscard]] GitIntegrations& integrations() { return integrations_; }
  // Client for logins of users at Git hosts.
  [[nodiscard]] OauthClient& oauth() { return oauth_; }
  [[nodiscard]] const TokenSeal& seal() const { return seal_; }
  // Null, as the next three, when there is no folder for clones.
  [[nodiscard]] Committer* committer() { return committer_ ? &*committer_ : nullptr; }
  [[nodiscard]] TreeReader* reader() { return reader_ ? &*reader_ : nullptr; }
  [[nodiscard]] SourceFiles* source_files() { return source_files_ ? &*source_files_ : nullptr; }
  [[nodiscard]] Promotions* promotions() { return promotions_ ? &*promotions_ : nullptr; }
  [[nodiscard]] RuntimeGitToken& own_token() { return own_token_; }
  // Error of the shared configuration repository; empty when it is applied, unset until it was
  // checked.
  [[nodiscard]] std::optional<std::string> config_repository_error() const;
  // Entries for /statusz.
  [[nodiscard]] StatusReport status() const;

 private:
  void use_seal();
  Task<> follow_runtime_secret();
  Task<> keep_default_integration();
  void start_permissions();
  void start_commits();
  Task<std::string> default_branch_of(RepositoryUrl repository, GitCredential credential,
                                      Deadline deadline);
  [[nodiscard]] StatusReport status_of_commits() const;

  DaemonContext context_;
  const Config& config_;
  ControlPlaneParts& control_plane_;
  ClusterParts& cluster_;
  RuntimeGitToken own_token_;
  http::Client client_;
  GitHostClient hosts_;
  TokenSeal seal_;
  IntegrationStore store_;
  GitIntegrations integrations_;
  OauthClient oauth_;
  ValidityCheck validity_;
  std::optional<GitPermissions> permissions_;
  std::optional<WorkerPool> pool_;
  std::optional<WorkerPool> clone_pool_;
  std::optional<CloneCache> clones_;
  std::optional<SigningKey> signing_key_;
  std::optional<Committer> committer_;
  std::string clones_error_;
  std::optional<ConfigRepositorySetup> config_repository_;
  std::optional<TreeReader> reader_;
  std::optional<SourceFiles> source_files_;
  std::optional<Promotions> promotions_;
  TaskGroup tasks_;
  Log log_{"app-proxy"};
};

}  // namespace gitops::app_proxy
