#pragma once

#include <string>
#include <vector>

#include "app-proxy/providers/git_provider.hpp"
#include "app-proxy/providers/host_calls.hpp"
#include "app-proxy/providers/repository_pages.hpp"

namespace gitops::app_proxy {

// Bitbucket Cloud: REST API 2.0 (developer.atlassian.com/cloud/bitbucket/rest). A user's token
// needs the user's name beside it; without a name it is sent as an OAuth token. New repositories
// are empty, since the host cannot create a first commit.
class Bitbucket : public GitProvider {
 public:
  Bitbucket(GitHostClient& client, ApiRoot root);

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
  // Checks the scopes that the host sends with each response.
  Task<Result<TokenCheck>> check_token(const GitAccess& access, TokenUse use,
                                       Deadline deadline) override;

 private:
  // Returns the user's workspaces, from the newer interface or, where that is missing, the older
  // one.
  Task<Result<Answer<std::vector<std::string>>>> workspaces(const GitAccess& access,
                                                            Deadline deadline);
  // Returns the names on all pages. `rest` is the path below the repository.
  Task<Result<Answer<std::vector<std::string>>>> names(const GitAccess& access,
                                                       const RepositoryName& name, std::string rest,
                                                       Deadline deadline);
  HostCalls calls_;
};

}  // namespace gitops::app_proxy
