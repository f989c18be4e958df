#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/providers/git_types.hpp"
#include "common/core/async.hpp"

namespace gitops::app_proxy {

// REST interface of one Git host. Requests use the token of `access`, and the host checks its
// permissions. Errors are those of git_error.hpp. Arguments are borrowed until the call ends. Loop
// thread only.
class GitProvider {
 public:
  GitProvider() = default;
  GitProvider(const GitProvider&) = delete;
  GitProvider& operator=(const GitProvider&) = delete;
  virtual ~GitProvider() = default;

  virtual Task<Result<Answer<Profile>>> who_am_i(const GitAccess& access, Deadline deadline) = 0;
  // Returns organisations, groups, workspaces or projects that may own repositories of the user;
  // `too_large` over 10,000.
  virtual Task<Result<Answer<std::vector<Organisation>>>> organisations(const GitAccess& access,
                                                                        Deadline deadline) = 0;
  // Returns a page of the repositories that the user owns or works on.
  virtual Task<Result<Answer<RepositoryPage>>> repositories(const GitAccess& access,
                                                            const RepositoryQuery& query,
                                                            Deadline deadline) = 0;
  virtual Task<Result<Answer<Repository>>> repository(const GitAccess& access,
                                                      const RepositoryName& name,
                                                      Deadline deadline) = 0;
  // Returns at most 3,000 branches and 3,000 tags; longer lists are marked as truncated.
  virtual Task<Result<Answer<BranchesAndTags>>> branches_and_tags(const GitAccess& access,
                                                                  const RepositoryName& name,
                                                                  Deadline deadline) = 0;
  // Returns a file at `ref`, a branch, a tag or a commit. Files over 5 MiB are `too_large`.
  virtual Task<Result<Answer<FileContent>>> read_file(const GitAccess& access,
                                                      const RepositoryName& name,
                                                      const std::string& path,
                                                      const std::string& ref,
                                                      Deadline deadline) = 0;
  // Returns the permissions for a repository; all false when the token cannot see it.
  virtual Task<Result<Answer<Permissions>>> permissions(const GitAccess& access,
                                                        const RepositoryName& name,
                                                        Deadline deadline) = 0;
  // Creates a repository; `conflict` when it exists.
  virtual Task<Result<Repository>> create_repository(const GitAccess& access,
                                                     const NewRepository& repository,
                                                     Deadline deadline) = 0;
  // Creates a pull request; `conflict` when there is one for this branch.
  virtual Task<Result<PullRequest>> create_pull_request(const GitAccess& access,
                                                        const RepositoryName& name,
                                                        const NewPullRequest& pull_request,
                                                        Deadline deadline) = 0;
  virtual Task<Result<Answer<PullRequest>>> pull_request(const GitAccess& access,
                                                         const RepositoryName& name,
                                                         std::int64_t id, Deadline deadline) = 0;
  virtual Task<Result<void>> set_commit_status(const GitAccess& access, const RepositoryName& name,
                                               const std::string& sha, const CommitStatus& status,
                                               Deadline deadline) = 0;
  // Creates a webhook for pushes and pull requests.
  virtual Task<Result<Webhook>> create_webhook(const GitAccess& access, const RepositoryName& name,
                                               const NewWebhook& webhook, Deadline deadline) = 0;
  // Returns the webhooks of a repository; `too_large` over 10,000.
  virtual Task<Result<Answer<std::vector<Webhook>>>> webhooks(const GitAccess& access,
                                                              const RepositoryName& name,
                                                              Deadline deadline) = 0;
  virtual Task<Result<void>> delete_webhook(const GitAccess& access, const RepositoryName& name,
                                            const std::string& id, Deadline deadline) = 0;
  // Checks that the host accepts the token, and which permissions it lacks for `use`. Changes
  // nothing.
  virtual Task<Result<TokenCheck>> check_token(const GitAccess& access, TokenUse use,
                                               Deadline deadline) = 0;
};

}  // namespace gitops::app_proxy
