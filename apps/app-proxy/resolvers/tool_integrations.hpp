#pragma once

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/git/committer.hpp"
#include "app-proxy/git/tree_reader.hpp"
#include "app-proxy/identity/runtime_identity.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "app-proxy/sealing/sealing_keys.hpp"
#include "common/graphql/resolvers.hpp"

namespace gitops::app_proxy {

// What applyIntegration works with; the pointers are null while the runtime has no access to its cluster.
struct ToolIntegrationParts {
  GitIntegrations* git = nullptr;
  Committer* committer = nullptr;
  TreeReader* reader = nullptr;
  SealingKeys* keys = nullptr;
  RuntimeIdentity* runtime = nullptr;
};

// applyIntegration: creates, updates or deletes an integration with another tool by one commit of the caller. The
// other tool is not asked.
Task<Result<graphql::Json>> apply_integration(const ToolIntegrationParts& parts,
                                              const RuntimeFiles& files, graphql::Call& call);

}  // namespace gitops::app_proxy
