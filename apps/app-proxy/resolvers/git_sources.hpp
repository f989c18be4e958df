#pragma once

#include <cstdint>
#include <string>

#include "app-proxy/actions/applications.hpp"
#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/git/committer.hpp"
#include "app-proxy/git/tree_reader.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "app-proxy/resolvers/features.hpp"
#include "common/graphql/resolvers.hpp"

namespace gitops::k8s {
class Client;
}

// The fields of the schema that change the shared configuration repository: each is one commit by the
// caller, with the token that the caller has registered in the integration "default". Argo CD applies
// it.
namespace gitops::app_proxy {

// The parts that these fields can do without.
using CommitterPart = FeaturePart<Feature::commits, Committer>;
using ApplicationsPart = FeaturePart<Feature::applications, ApplicationActions>;

// Registers the caller's token, and has the shared configuration repository cloned with it.
Task<Result<Integration>> register_git_token(GitIntegrations& git, CommitterPart committer,
                                             const RuntimeFiles& files, graphql::Call& call);
// Has the shared configuration repository cloned with the token that somebody has just registered.
Task<> prepare_config_repository(GitIntegrations& git, CommitterPart committer,
                                 const RuntimeFiles& files, Actor actor, std::string integration,
                                 Deadline deadline);
// Creating or editing a Git source has its repository cloned, too.
// GIT_NOT_FOUND when the caller's Git host does not have it, or not that branch.
Task<Result<void>> create_git_source(GitIntegrations& git, Committer& committer, TreeReader& reader,
                                     const RuntimeFiles& files, graphql::Call& call);
Task<Result<void>> edit_git_source(GitIntegrations& git, Committer& committer, TreeReader& reader,
                                   const RuntimeFiles& files, graphql::Call& call);
// `unsupported` when the cluster does not know the kind RestrictedGitSource.
Task<Result<void>> create_restricted_git_source(GitIntegrations& git, Committer& committer,
                                                TreeReader& reader, k8s::Client& cluster,
                                                const RuntimeFiles& files, graphql::Call& call);
Task<Result<void>> edit_restricted_git_source(GitIntegrations& git, Committer& committer,
                                              TreeReader& reader, const RuntimeFiles& files,
                                              graphql::Call& call);
// Removes a Git source of this runtime, and waits for the Argo CD, if there is one, to prune it.
Task<Result<void>> delete_application(GitIntegrations& git, Committer& committer,
                                      ApplicationsPart applications, const RuntimeFiles& files,
                                      graphql::Call& call);
// An Application that is there for this cluster stays as it is, but for its destination's namespace.
Task<Result<void>> create_argo_rollouts(GitIntegrations& git, Committer& committer,
                                        TreeReader& reader, const RuntimeFiles& files,
                                        graphql::Call& call);
// Returns the number of files that it removed; 0 when nothing was left of the runtime. Files that
// people put into the folder of the default Git source stay, which the commit says. From then on
// this process does not put the files back by itself, until a Git source is created, and the
// runtime's Application is deleted (ConfigRepositorySetup).
Task<Result<std::int64_t>> remove_runtime_from_isc_repo(GitIntegrations& git, Committer& committer,
                                                        TreeReader& reader,
                                                        const RuntimeFiles& files,
                                                        graphql::Call& call);

}  // namespace gitops::app_proxy
