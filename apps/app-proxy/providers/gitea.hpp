#pragma once

#include "app-proxy/providers/github_family.hpp"

namespace gitops::app_proxy {

// Gitea: REST API version 1 (docs.gitea.com/api), tested with 1.23.8.
class Gitea : public GitHubFamily {
 public:
  Gitea(GitHostClient& client, ApiRoot root);

  Task<Result<Answer<Profile>>> who_am_i(const GitAccess& access, Deadline deadline) override;
  Task<Result<Answer<RepositoryPage>>> repositories(const GitAccess& access,
                                                    const RepositoryQuery& query,
                                                    Deadline deadline) override;
  // Checks by requests that change nothing because their bodies are incomplete.
  Task<Result<TokenCheck>> check_token(const GitAccess& access, TokenUse use,
                                       Deadline deadline) override;
};

}  // namespace gitops::app_proxy
