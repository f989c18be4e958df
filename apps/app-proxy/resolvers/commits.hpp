#pragma once

#include <string>

#include "app-proxy/git/committer.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "common/graphql/resolvers.hpp"

// The fields of the schema that put commits into a repository, as the caller: with the token that the
// caller has registered, and the name and mail that the host tells of it.
namespace gitops::app_proxy {

// A commit that was pushed, and its author.
struct CommitView {
  CommitResult commit;
  GitAuthor author;
};

Task<Result<CommitView>> commit_files(GitIntegrations& git, Committer& committer,
                                      graphql::Call& call);
// Each path is a file that exists.
Task<Result<CommitView>> delete_files(GitIntegrations& git, Committer& committer,
                                      graphql::Call& call);

void add_commit_types(graphql::Resolvers& to);

// Pushes a commit as the user of `account`: its author and credential are set here. Errors as clients
// may see them.
Task<Result<CommitView>> commit_as(const GitAccount& account, Committer& committer,
                                   CommitRequest request, Deadline deadline);

// Has a repository cloned that the user of `account` may soon commit to, unless it is at another host.
void prepare_clone(const GitAccount& account, Committer& committer,
                   const RepositoryUrl& repository);

// Below: pure.

// Where a repository is cloned from and pushed to, as its host tells. The user's token goes there, so
// it must be the integration's own host, and with TLS unless the integration has none. Errors have a
// subcode of git_errors.
Result<RepositoryUrl> clone_url_of(const ApiRoot& root, std::string_view url);

// The user name beside a token in Git's requests. Most hosts look at the token alone.
std::string git_username_of(const GitAccount& account);

// An error of the committer as clients may see it: with a subcode of git_errors and what to do.
Error public_commit_error(Error error);

}  // namespace gitops::app_proxy
