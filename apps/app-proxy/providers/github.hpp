#pragma once

#include "app-proxy/providers/github_family.hpp"

namespace gitops::app_proxy {

// GitHub and GitHub Enterprise: REST API version 2022-11-28 (docs.github.com/rest).
class GitHub : public GitHubFamily {
 public:
  GitHub(GitHostClient& client, ApiRoot root);

  Task<Result<Answer<Profile>>> who_am_i(const GitAccess& access, Deadline deadline) override;
  // Returns a page of repositories. A search covers the repositories of the user and of the user's
  // organisations.
  Task<Result<Answer<RepositoryPage>>> repositories(const GitAccess& access,
                                                    const RepositoryQuery& query,
                                                    Deadline deadline) override;
  // Checks a classic token by its scopes. A fine-grained token has none; it is checked by requests
  // to a repository of its user, one with the right if there is any, that change nothing because
  // their bodies are incomplete.
  Task<Result<TokenCheck>> check_token(const GitAccess& access, TokenUse use,
                                       Deadline deadline) override;

 private:
  Task<Result<TokenCheck>> probe(const GitAccess& access, TokenUse use, TokenCheck check,
                                 Deadline deadline);
};

}  // namespace gitops::app_proxy
