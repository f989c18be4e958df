#pragma once

#include <functional>
#include <string>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/git/committer.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "common/graphql/resolvers.hpp"

// The fields of the schema that change the shared configuration repository: each is one commit by the
// caller, with the token that the caller has registered in the integration "default". Argo CD applies
// it. `git` and `committer` are null while the runtime has no access to its cluster.
namespace gitops::app_proxy {

// The runtime, as far as its files are concerned.
struct RuntimeFiles {
  std::string runtime = {};
  std::string runtime_namespace = {};
  bool is_configuration_runtime = false;
  std::string chart_repository = {};  // Helm's, with the chart of Argo Rollouts
  Scheme scheme = Scheme::https_only;
  // The specifier of the account's repository; empty until it is known, or when there is none.
  std::function<std::string()> config_repository = [] { return std::string(); };
};

Task<Result<void>> create_git_source(GitIntegrations* git, Committer* committer,
                                     const RuntimeFiles& files, graphql::Call& call);
Task<Result<void>> edit_git_source(GitIntegrations* git, Committer* committer,
                                   const RuntimeFiles& files, graphql::Call& call);
// Removes a Git source of this runtime.
Task<Result<void>> delete_application(GitIntegrations* git, Committer* committer,
                                      const RuntimeFiles& files, graphql::Call& call);
Task<Result<void>> create_argo_rollouts(GitIntegrations* git, Committer* committer,
                                        const RuntimeFiles& files, graphql::Call& call);
// Returns the number of commits that were needed: 1, or 0 when nothing was left of the runtime.
Task<Result<std::int64_t>> remove_runtime_from_isc_repo(GitIntegrations* git, Committer* committer,
                                                        const RuntimeFiles& files,
                                                        graphql::Call& call);

}  // namespace gitops::app_proxy
