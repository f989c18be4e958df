#include "app-proxy/providers/gitea.hpp"

#include <string>
#include <utility>

#include "app-proxy/providers/github_api.hpp"
#include "app-proxy/providers/repository_pages.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

// Default of Gitea's setting MAX_RESPONSE_ITEMS.
constexpr std::size_t kPageLimit = 50;

}  // namespace

Gitea::Gitea(GitHostClient& client, ApiRoot root)
    : GitHubFamily(client, std::move(root),
                   {.style = AuthStyle::token,
                    .accept = "application/json",
                    .hook_type = "gitea",
                    .page_limit = kPageLimit}) {}

Task<Result<Answer<Profile>>> Gitea::who_am_i(const GitAccess& access, Deadline deadline) {
  const auto host = calls_.root().web_host();
  co_return co_await calls_.get<Profile>(
      access, "/user", "user of the Git token", deadline,
      [&host](std::string_view body) { return github::read_profile(body, host); });
}

Task<Result<Answer<RepositoryPage>>> Gitea::repositories(const GitAccess& access,
                                                         const RepositoryQuery& query,
                                                         Deadline deadline) {
  std::string path = "/user/repos?";
  if (!query.search.empty()) {
    // Searches all repositories that the user owns or works on by a part of their name.
    const auto profile = co_await who_am_i(access, deadline);
    if (!profile) co_return std::unexpected(profile.error());
    path = "/repos/search?" +
           http::query_string({{"q", query.search}, {"uid", profile->value.id}}) + "&";
  }
  co_return co_await gather_page(
      query, {.items = kPageLimit, .is_certain = false}, [&](std::size_t page, std::size_t size) {
        return calls_.page(
            access,
            {.path = path + "limit=" + std::to_string(size) + "&page=" + std::to_string(page),
             .what = "repositories"},
            deadline,
            [is_search = !query.search.empty()](std::string_view body,
                                                const http::Headers& headers) -> Result<HostPage> {
              if (!is_search) return linked_page(github::read_repositories(body), headers);
              auto found = github::read_search(body);
              if (!found) return std::unexpected(std::move(found.error()));
              return linked_page(std::move(found->repositories), headers);
            });
      });
}

Task<Result<TokenCheck>> Gitea::check_token(const GitAccess& access, TokenUse /*use*/,
                                            Deadline deadline) {
  auto profile = co_await who_am_i(access, deadline);
  if (!profile) co_return std::unexpected(std::move(profile.error()));
  TokenCheck check{.profile = std::move(profile->value)};
  // Repositories, their contents and their hooks need the same scope. 403: the token lacks it; 422:
  // it has it, and the empty body is refused.
  auto answer = co_await calls_.send(access,
                                     {.method = "POST",
                                      .path = "/user/repos",
                                      .body = "{}",
                                      .what = "right to write repositories",
                                      .also = {400, 403, 409, 422}},
                                     deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  if (answer->status == 403) check.missing.emplace_back("write:repository and write:user");
  co_return check;
}

}  // namespace gitops::app_proxy
