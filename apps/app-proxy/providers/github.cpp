#include "app-proxy/providers/github.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "app-proxy/providers/github_api.hpp"
#include "app-proxy/providers/repository_pages.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kPageLimit = 100;
// Largest length of a search's text.
constexpr std::size_t kMaxSearch = 256;

// Returns searches of all these owners' repositories, as many as their names require.
std::vector<std::string> searches(std::string_view text, const std::vector<std::string>& owners) {
  std::vector<std::string> out;
  std::vector<std::string> some;
  for (const auto& owner : owners) {
    some.push_back(owner);
    if (some.size() > 1 && github::search_query(text, some).size() > kMaxSearch) {
      some.pop_back();
      out.push_back(github::search_query(text, some));
      some = {owner};
    }
  }
  out.push_back(github::search_query(text, some));
  return out;
}

// Returns the repository in which a token's permissions are tried: one in which the user has the
// right, so that a refusal is about the token. The first one when there is none.
const Repository& repository_to_try(
    const std::vector<std::shared_ptr<const Repository>>& repositories, TokenUse use) {
  const auto rank = [use](const std::shared_ptr<const Repository>& repository) {
    const auto may = repository->permissions.value_or(Permissions());
    return use == TokenUse::runtime && may.admin ? 2 : may.write ? 1 : 0;
  };
  return **std::ranges::max_element(repositories, {}, rank);
}

}  // namespace

GitHub::GitHub(GitHostClient& client, ApiRoot root)
    : GitHubFamily(client, std::move(root),
                   {.style = AuthStyle::bearer,
                    .accept = "application/vnd.github+json",
                    .hook_type = std::nullopt,
                    .page_limit = kPageLimit}) {}

Task<Result<Answer<Profile>>> GitHub::who_am_i(const GitAccess& access, Deadline deadline) {
  const auto host = calls_.root().web_host();
  auto profile = co_await calls_.get<Profile>(
      access, "/user", "user of the Git token", deadline,
      [&host](std::string_view body) { return github::read_profile(body, host); });
  if (!profile) co_return profile;
  const bool is_hidden = profile->value.mail.ends_with("@users.noreply." + host);
  if (!is_hidden) co_return profile;
  co_return co_await calls_.with_primary_mail(access, std::move(*profile), deadline,
                                              github::read_primary_mail);
}

Task<Result<Answer<RepositoryPage>>> GitHub::repositories(const GitAccess& access,
                                                          const RepositoryQuery& query,
                                                          Deadline deadline) {
  if (query.search.empty()) {
    co_return co_await gather_page(
        query, {.items = kPageLimit}, [&](std::size_t page, std::size_t size) {
          return calls_.page(access,
                             {.path = "/user/repos?sort=pushed&affiliation=owner,collaborator,"
                                      "organization_member&per_page=" +
                                      std::to_string(size) + "&page=" + std::to_string(page),
                              .what = "repositories"},
                             deadline, [](std::string_view body, const http::Headers& headers) {
                               return linked_page(github::read_repositories(body), headers);
                             });
        });
  }
  const auto profile = co_await who_am_i(access, deadline);
  if (!profile) co_return std::unexpected(profile.error());
  std::vector<std::string> owners{profile->value.login};
  const auto organisations = co_await this->organisations(access, deadline);
  if (organisations) {
    for (const auto& organisation : organisations->value) owners.push_back(organisation.name);
  } else if (const auto code = organisations.error().code;
             code != ErrorCode::forbidden && code != ErrorCode::not_found) {
    // A list that could not be read does not say that there are no others. The user's own
    // repositories are searched without the right to list organisations.
    co_return std::unexpected(organisations.error());
  }
  const auto texts = searches(query.search, owners);
  co_return co_await gather_lists(query, texts.size(), [&](std::size_t list, std::size_t page) {
    const auto number = std::to_string(page);
    const auto items = std::to_string(kPageLimit);
    return calls_.page(
        access,
        {.path =
             "/search/repositories?" +
             http::query_string(
                 {{"q", texts[list]}, {"sort", "updated"}, {"per_page", items}, {"page", number}}),
         .what = "search for repositories",
         .resource = "search"},
        deadline, [page](std::string_view body, const http::Headers&) -> Result<HostPage> {
          auto found = github::read_search(body);
          if (!found) return std::unexpected(std::move(found.error()));
          HostPage out{.repositories = std::move(found->repositories),
                       .has_next = page * kPageLimit < found->total,
                       .total = found->total};
          out.size = out.repositories.size();
          return out;
        });
  });
}

Task<Result<TokenCheck>> GitHub::check_token(const GitAccess& access, TokenUse use,
                                             Deadline deadline) {
  auto profile = co_await who_am_i(access, deadline);
  if (!profile) co_return std::unexpected(std::move(profile.error()));
  TokenCheck check{.profile = std::move(profile->value)};
  auto answer =
      co_await calls_.send(access, {.path = "/user", .what = "scopes of the Git token"}, deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  // Fine-grained tokens, and users' tokens of GitHub Apps, have permissions and an empty field.
  const auto token = access.token.reveal();
  const bool is_fine_grained = token.starts_with("github_pat_") || token.starts_with("ghu_");
  if (const auto scopes = answer->headers.find("X-OAuth-Scopes"); scopes && !is_fine_grained) {
    check.missing = github::missing_scopes(*scopes, use);
    co_return check;
  }
  co_return co_await probe(access, use, std::move(check), deadline);
}

Task<Result<TokenCheck>> GitHub::probe(const GitAccess& access, TokenUse use, TokenCheck check,
                                       Deadline deadline) {
  check.permissions_known = false;
  const auto page =
      co_await repositories(access, {.search = {}, .page = 1, .limit = kPageLimit}, deadline);
  if (!page || page->value.repositories.empty()) co_return check;
  const auto name =
      parse_repository_name(repository_to_try(page->value.repositories, use).full_name);
  if (!name) co_return check;
  struct Probe {
    const char* method;
    const char* rest;
    const char* right;
    bool is_for_runtime;
  };
  // A permitted request with an empty body is 422, or 200 for a read; a forbidden one is 403 or
  // 404.
  static constexpr Probe kProbes[] = {
      {"POST", "/git/refs", "Contents: write", false},
      {"POST", "/pulls", "Pull requests: write", true},
      {"POST", "/statuses/0000000000000000000000000000000000000000", "Commit statuses: write",
       true},
      {"GET", "/hooks", "Webhooks: read and write", true},
  };
  for (const auto& probe : kProbes) {
    if (probe.is_for_runtime && use != TokenUse::runtime) continue;
    const bool is_read = std::string_view(probe.method) == "GET";
    auto answer = co_await calls_.send(access,
                                       {.method = probe.method,
                                        .path = github::repository_path(*name, probe.rest),
                                        .body = is_read ? "" : "{}",
                                        .what = std::string("right ") + probe.right,
                                        .also = {400, 403, 404, 409, 422}},
                                       deadline);
    // A failed read does not prove a missing permission.
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    if (answer->status == 403 || answer->status == 404) check.missing.emplace_back(probe.right);
  }
  check.permissions_known = true;
  co_return check;
}

}  // namespace gitops::app_proxy
