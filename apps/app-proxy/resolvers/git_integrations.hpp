#pragma once

#include <optional>
#include <vector>

#include "app-proxy/integrations/git_integrations.hpp"
#include "app-proxy/users/caller.hpp"
#include "common/graphql/resolvers.hpp"

// The fields of the schema about Git integrations.
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

// What the resolvers of Git share.

// The caller of an operation that passed the check of its permission.
Actor actor_of(graphql::Call& call);
// An error as clients may see it: with its remedy where the caller can do something, and without the
// runtime's own errors, which only the log tells. A Git host's 401 and 403 are not shown as such:
// they concern the Git token, not the caller's session.
Error shown(Error error);
template <class T>
Result<T> shown(Result<T> result) {
  if (result) return result;
  return std::unexpected(shown(std::move(result.error())));
}

}  // namespace gitops::app_proxy
