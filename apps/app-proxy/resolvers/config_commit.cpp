#include "app-proxy/resolvers/config_commit.hpp"

#include <utility>

#include "app-proxy/errors/client_codes.hpp"
#include "app-proxy/resolvers/arguments.hpp"
#include "app-proxy/resolvers/commits.hpp"
#include "app-proxy/resolvers/git_integrations.hpp"

namespace gitops::app_proxy {

Task<Result<ConfigTarget>> config_target(GitIntegrations& git, const RuntimeFiles& files,
                                         graphql::Call& call, Deadline deadline) {
  auto repository = files.repository();
  if (!repository) co_return std::unexpected(std::move(repository.error()));
  auto account = shown(co_await git.open(actor_of(call), {}, deadline));
  if (!account) co_return std::unexpected(account.error());
  // The token is sent to its own host only.
  auto url = clone_url_of(account->root, repository->at.repository.to_string());
  if (!url) co_return std::unexpected(std::move(url.error()));
  co_return ConfigTarget{
      .account = std::move(*account),
      .repository = std::move(*repository),
      .requested_by = requested_by(user_of(call), files.runtime),
      .trace = call.context<Caller>().trace,
  };
}

Task<Result<bool>> commit_config(const ConfigTarget& target, Committer& committer,
                                 std::vector<FileChange> changes, std::string message,
                                 Deadline deadline) {
  CommitRequest request{.repository = target.repository.at.repository,
                        .branch = target.repository.at.ref,
                        .changes = std::move(changes),
                        .message = std::move(message),
                        .description = target.requested_by,
                        .trace = target.trace};
  const auto made = co_await commit_as(target.account, committer, std::move(request), deadline);
  if (made) co_return true;
  if (made.error().subcode == git_errors::kNothingToCommit) co_return false;
  co_return std::unexpected(made.error());
}

}  // namespace gitops::app_proxy
