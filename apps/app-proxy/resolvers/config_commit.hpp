#pragma once

#include <string>
#include <vector>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/git/committer.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "common/graphql/resolvers.hpp"

// Common parts of fields that change the shared configuration repository by a commit of the caller.
namespace gitops::app_proxy {

// The caller and the repository for the commit.
struct ConfigTarget {
  GitAccount account;
  ConfigRepository repository;
  std::string requested_by;
  SpanContext trace = {};  // of the request
};

Task<Result<ConfigTarget>> config_target(GitIntegrations& git, const RuntimeFiles& files,
                                         graphql::Call& call, Deadline deadline);
// Commits, and returns true when there was something to commit. Adds a line with the caller to the
// message.
Task<Result<bool>> commit_config(const ConfigTarget& target, Committer& committer,
                                 std::vector<FileChange> changes, std::string message,
                                 Deadline deadline);

}  // namespace gitops::app_proxy
