#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app-proxy/integrations/git_integrations.hpp"
#include "common/graphql/resolvers.hpp"

// Fields of the schema that send requests to a Git host with the caller's registered token.
namespace gitops::app_proxy {

// A page of repositories in the form of gitRepositories.
struct RepositoryView {
  std::shared_ptr<const Repository> repository;  // never null
  ProviderKind provider = ProviderKind::github;
};
struct RepositoriesPage {
  std::vector<RepositoryView> data;
  std::size_t page = 1;
  bool has_next = false;
};
struct PullRequestView {
  PullRequest pull_request;
  std::string repo;
};

Task<Result<std::vector<Organisation>>> git_organizations(GitIntegrations& git,
                                                          graphql::Call& call);
Task<Result<RepositoriesPage>> git_repositories(GitIntegrations& git, graphql::Call& call);
Task<Result<BranchesAndTags>> repository_branches_and_tags(GitIntegrations& git,
                                                           graphql::Call& call);
// Reads a text file; content that is not UTF-8 is refused.
Task<Result<FileContent>> read_file(GitIntegrations& git, graphql::Call& call);
Task<Result<std::optional<PullRequestView>>> pull_request(GitIntegrations& git,
                                                          graphql::Call& call);
Task<Result<PullRequestView>> create_pull_request(GitIntegrations& git, graphql::Call& call);

void add_repository_types(graphql::Resolvers& to);

}  // namespace gitops::app_proxy
