#pragma once

#include <string>

#include "app-proxy/git/committer.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "common/graphql/resolvers.hpp"

// Fields of the schema that commit to a repository as the caller: with the caller's registered
// token, and the name and mail that the host reports for it.
namespace gitops::app_proxy {

// A pushed commit and its author.
struct CommitView {
  CommitResult commit;
  GitAuthor author;
};

Task<Result<CommitView>> commit_files(GitIntegrations& git, Committer& committer,
                                      graphql::Call& call);
// Deletes files. Each path must be an existing file.
Task<Result<CommitView>> delete_files(GitIntegrations& git, Committer& committer,
                                      graphql::Call& call);

void add_commit_types(graphql::Resolvers& to);

// Pushes a commit as the user of `account`, whose author and credential it sets. Errors are in the
// form for clients.
Task<Result<CommitView>> commit_as(const GitAccount& account, Committer& committer,
                                   CommitRequest request, Deadline deadline);

// Starts to clone a repository that the user of `account` may soon commit to, unless it is at
// another host.
void prepare_clone(const GitAccount& account, Committer& committer,
                   const RepositoryUrl& repository);

// Pure functions.

// Checks the clone URL that a host reports for a repository. The user's token is sent there, so it
// must be at the integration's own host, and use TLS unless the integration does not. Errors have a
// subcode of git_errors.
Result<RepositoryUrl> clone_url_of(const ApiRoot& root, std::string_view url);

// User name beside a token in Git's requests. Most hosts check the token alone.
std::string git_username_of(const GitAccount& account);

// Converts an error of the committer for clients: with a subcode of git_errors and a remedy.
Error public_commit_error(Error error);

}  // namespace gitops::app_proxy
