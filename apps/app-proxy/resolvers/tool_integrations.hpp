#pragma once

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/git/committer.hpp"
#include "app-proxy/git/tree_reader.hpp"
#include "app-proxy/identity/runtime_identity.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "app-proxy/sealing/sealing_keys.hpp"
#include "common/graphql/resolvers.hpp"

namespace gitops::app_proxy {

// Resolves applyIntegration: creates, updates or deletes an integration with another tool by one
// commit of the caller. Sends no request to the other tool.
Task<Result<graphql::Json>> apply_integration(GitIntegrations& git, Committer& committer,
                                              TreeReader& reader, SealingKeys& keys,
                                              RuntimeIdentity& runtime, const RuntimeFiles& files,
                                              graphql::Call& call);

}  // namespace gitops::app_proxy
