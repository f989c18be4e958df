#include "app-proxy/http/report_git_hosts.hpp"

#include <utility>

#include "app-proxy/providers/api_root.hpp"

namespace gitops::app_proxy {

Task<Result<GitHostAccess>> ReportGitHosts::access(const User& user, std::string integration,
                                                   Deadline deadline) {
  const bool is_named = !integration.empty();
  auto account = co_await dependencies_.integrations.open(
      Actor{.user_id = user.id, .account_id = user.account_id, .is_admin = user.is_admin},
      std::move(integration), deadline);
  if (account) {
    co_return GitHostAccess{.provider = std::string(wire_name(account->root.kind)),
                            .api_url = account->root.text(),
                            .username = account->login,
                            .token = account->access.token};
  }
  const bool may_use_runtimes =
      (user.is_admin || user.is_runtime) && dependencies_.own_token.is_set();
  if (is_named || !may_use_runtimes) co_return std::unexpected(std::move(account.error()));
  const auto& own = dependencies_.users.own();
  const auto root = make_api_root(own.git_provider, own.git_api_url, dependencies_.plain_http);
  if (!root) co_return std::unexpected(root.error());
  auto credential = dependencies_.own_token.credential();
  co_return GitHostAccess{.provider = std::string(wire_name(root->kind)),
                          .api_url = root->text(),
                          .username = std::move(credential.username),
                          .token = std::move(credential.password)};
}

}  // namespace gitops::app_proxy
