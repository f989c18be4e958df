#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app-proxy/providers/git_host_client.hpp"
#include "app-proxy/providers/git_provider.hpp"
#include "app-proxy/providers/host_calls.hpp"

namespace gitops::app_proxy {

// Operations that are equal for GitHub and Gitea.
class GitHubFamily : public GitProvider {
 public:
  struct Dialect {
    AuthStyle style;
    std::string accept;
    std::optional<std::string> hook_type;  // Gitea only
    std::size_t page_limit;                // of lists
  };
  GitHubFamily(GitHostClient& client, ApiRoot root, Dialect dialect);

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
  Task<Result<Answer<std::vector<Organisation>>>> organisations(const GitAccess& access,
                                                                Deadline deadline) override;

 protected:
  [[nodiscard]] std::string page_size_name() const;

  HostCalls calls_;
  Dialect dialect_;
};

}  // namespace gitops::app_proxy
