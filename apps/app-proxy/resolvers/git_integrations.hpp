#pragma once

#include <optional>
#include <vector>

#include "app-proxy/integrations/git_integrations.hpp"
#include "app-proxy/users/caller.hpp"
#include "common/graphql/resolvers.hpp"

// Fields of the schema for Git integrations.
namespace gitops::app_proxy {

Task<Result<std::vector<Integration>>> git_integrations(GitIntegrations& git, graphql::Call& call);
Task<Result<std::optional<Integration>>> git_integration(GitIntegrations& git, graphql::Call& call);
Task<Result<Integration>> add_git_integration(GitIntegrations& git, graphql::Call& call);
Task<Result<Integration>> edit_git_integration(GitIntegrations& git, graphql::Call& call);
Task<Result<void>> remove_git_integration(GitIntegrations& git, graphql::Call& call);
Task<Result<Integration>> register_to_git_integration(GitIntegrations& git, graphql::Call& call);
Task<Result<Integration>> deregister_from_git_integration(GitIntegrations& git,
                                                          graphql::Call& call);
Task<Result<void>> validate_git_provider(GitIntegrations& git, graphql::Call& call);

void add_git_integration_types(graphql::Resolvers& to);

// Helpers that the resolvers for Git share.

// Returns the caller of an operation that passed its permission check.
Actor actor_of(graphql::Call& call);
// Converts an error for clients: adds a remedy where the caller can act, and hides the runtime's
// own errors, which go to the log. A Git host's 401 and 403 get another code, since they concern
// the Git token and not the caller's session.
Error shown(Error error);
template <class T>
Result<T> shown(Result<T> result) {
  if (result) return result;
  return std::unexpected(shown(std::move(result.error())));
}

}  // namespace gitops::app_proxy
