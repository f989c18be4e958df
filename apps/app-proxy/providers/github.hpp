#pragma once

#include "app-proxy/providers/github_family.hpp"

namespace gitops::app_proxy {

// GitHub and GitHub Enterprise: REST API version 2022-11-28 (docs.github.com/rest).
class GitHub : public GitHubFamily {
 public:
  GitHub(GitHostClient& client, ApiRoot root);

  Task<Result<Answer<Profile>>> who_am_i(const GitAccess& access, Deadline deadline) override;
  // A search finds names in the repositories of the user and of the user's organisations.
  Task<Result<Answer<RepositoryPage>>> repositories(const GitAccess& access,
                                                    const RepositoryQuery& query,
                                                    Deadline deadline) override;
  // Classic tokens by their scopes; fine-grained ones, which have none, by requests to one of their
  // repositories that change nothing because their bodies are incomplete.
  Task<Result<TokenCheck>> check_token(const GitAccess& access, TokenUse use,
                                       Deadline deadline) override;

 private:
  Task<Result<TokenCheck>> probe(const GitAccess& access, TokenUse use, TokenCheck check,
                                 Deadline deadline);
};

}  // namespace gitops::app_proxy
