#pragma once

#include <cstdint>
#include <string>

#include "app-proxy/actions/applications.hpp"
#include "app-proxy/clusters/managed_clusters.hpp"
#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/git/committer.hpp"
#include "app-proxy/git/tree_reader.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "app-proxy/resolvers/features.hpp"
#include "common/graphql/resolvers.hpp"

namespace gitops::k8s {
class Client;
}

// Fields of the schema that change the shared configuration repository. Each makes one commit as
// the caller, with the caller's registered token of the integration "default". Argo CD applies the
// commit.
namespace gitops::app_proxy {

// Optional parts of these fields.
using CommitterPart = FeaturePart<Feature::commits, Committer>;
using ClustersPart = FeaturePart<Feature::clusters, ManagedClusters>;
using ApplicationsPart = FeaturePart<Feature::applications, ApplicationActions>;

// Registers the caller's token, and starts to clone the shared configuration repository with it.
Task<Result<Integration>> register_git_token(GitIntegrations& git, CommitterPart committer,
                                             const RuntimeFiles& files, graphql::Call& call);
// Clones the shared configuration repository with a token that was just registered.
Task<> prepare_config_repository(GitIntegrations& git, CommitterPart committer,
                                 const RuntimeFiles& files, Actor actor, std::string integration,
                                 Deadline deadline);
// Creates a Git source. Creating or editing a Git source also starts to clone its repository.
// GIT_NOT_FOUND when the caller's Git host does not have the repository or the branch, `not_found`
// when Argo CD does not have the cluster.
Task<Result<void>> create_git_source(GitIntegrations& git, Committer& committer, TreeReader& reader,
                                     ClustersPart clusters, const RuntimeFiles& files,
                                     graphql::Call& call);
Task<Result<void>> edit_git_source(GitIntegrations& git, Committer& committer, TreeReader& reader,
                                   const RuntimeFiles& files, graphql::Call& call);
// Creates a restricted Git source; `unsupported` when the cluster does not have the kind
// RestrictedGitSource.
Task<Result<void>> create_restricted_git_source(GitIntegrations& git, Committer& committer,
                                                TreeReader& reader, k8s::Client& cluster,
                                                const RuntimeFiles& files, graphql::Call& call);
Task<Result<void>> edit_restricted_git_source(GitIntegrations& git, Committer& committer,
                                              TreeReader& reader, const RuntimeFiles& files,
                                              graphql::Call& call);
// Removes a Git source of this runtime. Waits until Argo CD, if configured, has pruned it.
Task<Result<void>> delete_application(GitIntegrations& git, Committer& committer,
                                      ApplicationsPart applications, const RuntimeFiles& files,
                                      graphql::Call& call);
// Installs Argo Rollouts in a cluster that Argo CD has. An existing Application for this cluster is
// kept, except for its destination's namespace.
Task<Result<void>> create_argo_rollouts(GitIntegrations& git, Committer& committer,
                                        TreeReader& reader, ClustersPart clusters,
                                        const RuntimeFiles& files, graphql::Call& call);
// Removes the runtime's files and returns their number; 0 when none were left. Files of people in
// the folder of the default Git source are kept; the commit's message says so. Afterwards no
// replica recreates the files until it restarts or a Git source is created, and the runtime's
// Application is deleted (ConfigRepositorySetup).
Task<Result<std::int64_t>> remove_runtime_from_isc_repo(GitIntegrations& git, Committer& committer,
                                                        TreeReader& reader,
                                                        const RuntimeFiles& files,
                                                        graphql::Call& call);

}  // namespace gitops::app_proxy
