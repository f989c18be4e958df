#pragma once

#include <string>
#include <vector>

#include "app-proxy/providers/git_provider.hpp"
#include "app-proxy/providers/host_calls.hpp"
#include "app-proxy/providers/repository_pages.hpp"

namespace gitops::app_proxy {

// Bitbucket Server and Data Center: REST API 1.0 (developer.atlassian.com/server/bitbucket/rest).
// The owner of a repository is its project's key, or "~user". New repositories are empty, and lists
// of repositories contain neither the default branch nor the time of the last push.
class BitbucketServer : public GitProvider {
 public:
  BitbucketServer(GitHostClient& client, ApiRoot root);

  Task<Result<Answer<Profile>>> who_am_i(const GitAccess& access, Deadline deadline) override;
  Task<Result<Answer<std::vector<Organisation>>>> organisations(const GitAccess& access,
                                                                Deadline deadline) override;
  Task<Result<Answer<RepositoryPage>>> repositories(const GitAccess& access,
                                                    const RepositoryQuery& query,
                                                    Deadline deadline) override;
  Task<Result<Answer<Repository>>> repository(const GitAccess& access, const RepositoryName& name,
                                              Deadline deadline) override;
  Task<Result<Answer<BranchesAndTags>>> branches_and_tags(const GitAccess& access,
                                                          const RepositoryName& name,
                                                          Deadline deadline) override;
  Task<Result<Answer<FileContent>>> read_file(const GitAccess& access, const RepositoryName& name,
                                              const std::string& path, const std::string& ref,
                                              Deadline deadline) override;
  Task<Result<Answer<Permissions>>> permissions(const GitAccess& access, const RepositoryName& name,
                                                Deadline deadline) override;
  Task<Result<Repository>> create_repository(const GitAccess& access,
                                             const NewRepository& repository,
                                             Deadline deadline) override;
  Task<Result<PullRequest>> create_pull_request(const GitAccess& access, const RepositoryName& name,
                                                const NewPullRequest& pull_request,
                                                Deadline deadline) override;
  Task<Result<Answer<PullRequest>>> pull_request(const GitAccess& access,
                                                 const RepositoryName& name, std::int64_t id,
                                                 Deadline deadline) override;
  Task<Result<void>> set_commit_status(const GitAccess& access, const RepositoryName& name,
                                       const std::string& sha, const CommitStatus& status,
                                       Deadline deadline) override;
  Task<Result<Webhook>> create_webhook(const GitAccess& access, const RepositoryName& name,
                                       const NewWebhook& webhook, Deadline deadline) override;
  Task<Result<Answer<std::vector<Webhook>>>> webhooks(const GitAccess& access,
                                                      const RepositoryName& name,
                                                      Deadline deadline) override;
  Task<Result<void>> delete_webhook(const GitAccess& access, const RepositoryName& name,
                                    const std::string& id, Deadline deadline) override;
  // Checks a token. For a user: it must have write access to some repository. For a runtime: it
  // must be able to create one, tested by a request with a name that the host refuses.
  Task<Result<TokenCheck>> check_token(const GitAccess& access, TokenUse use,
                                       Deadline deadline) override;

 private:
  // Returns all values of a list in pages.
  template <class T, class Decode>
  Task<Result<Answer<std::vector<T>>>> all_values(const GitAccess& access, std::string path,
                                                  std::string what, std::size_t most,
                                                  Deadline deadline, Decode decode);
  // Checks whether the user has this permission for the repository.
  Task<Result<Answer<bool>>> has(const GitAccess& access, const RepositoryName& name,
                                 std::string permission, Deadline deadline);
  HostCalls calls_;
};

}  // namespace gitops::app_proxy
