#include "app-proxy/providers/bitbucket_server.hpp"

#include <algorithm>
#include <utility>

#include "app-proxy/providers/bitbucket_server_api.hpp"
#include "app-proxy/providers/host_json.hpp"
#include "common/core/encoding.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kPageLimit = 100;
constexpr std::size_t kMaxFile = 5UL * 1024 * 1024;

}  // namespace

BitbucketServer::BitbucketServer(GitHostClient& client, ApiRoot root)
    : calls_(client, std::move(root), AuthStyle::bearer, "application/json") {}

template <class T, class Decode>
Task<Result<Answer<std::vector<T>>>> BitbucketServer::all_values(const GitAccess& access,
                                                                 std::string path, std::string what,
                                                                 std::size_t most,
                                                                 Deadline deadline, Decode decode) {
  Answer<std::vector<T>> out;
  const char joint = path.contains('?') ? '&' : '?';
  for (std::size_t start = 0;;) {
    auto answer =
        co_await calls_.send(access,
                             {.path = path + joint + "limit=" + std::to_string(kPageLimit) +
                                      "&start=" + std::to_string(start),
                              .what = what},
                             deadline);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    auto page = decode(std::string_view(answer->body));
    if (!page) co_return std::unexpected(calls_.unreadable(what, page.error()));
    out.is_last_known = out.is_last_known || answer->is_last_known;
    if (!add_page(out, std::move(page->items), most)) break;
    if (!page->next_start || *page->next_start <= start) break;
    start = *page->next_start;
  }
  co_return out;
}

Task<Result<Answer<Profile>>> BitbucketServer::who_am_i(const GitAccess& access,
                                                        Deadline deadline) {
  // Anonymous users may read this, but only a valid token gets the header field.
  auto answer = co_await calls_.send(
      access, {.path = "/application-properties", .what = "user of the Git token"}, deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  const auto name = answer->headers.find("X-AUSERNAME");
  if (!name || name->empty() || *name == "anonymous") {
    co_return std::unexpected(refused_by_host({calls_.root(), "user of the Git token"},
                                              {.status = 401}, access.token.reveal()));
  }
  const auto host = calls_.root().web_host();
  // Slugs are lower case. If one differs from the name in another way, the host finds no user.
  std::string slug(*name);
  std::ranges::transform(slug, slug.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (slug == "." || slug == "..") {
    co_return std::unexpected(bad_answer({calls_.root(), "user of the Git token"}, "no user name"));
  }
  co_return co_await calls_.get<Profile>(
      access, "/users/" + percent_encode(slug), "user of the Git token", deadline,
      [&host](std::string_view body) { return bitbucket_server::read_user(body, host); });
}

Task<Result<Answer<std::vector<Organisation>>>> BitbucketServer::organisations(
    const GitAccess& access, Deadline deadline) {
  co_return calls_.whole(
      co_await all_values<Organisation>(access, "/projects", "projects", kMaxListed, deadline,
                                        bitbucket_server::read_projects),
      "projects");
}

Task<Result<Answer<RepositoryPage>>> BitbucketServer::repositories(const GitAccess& access,
                                                                   const RepositoryQuery& query,
                                                                   Deadline deadline) {
  const auto limit = std::clamp<std::size_t>(query.limit, 1, 200);
  const auto page = std::max<std::size_t>(query.page, 1);
  std::string path = "/repos?permission=REPO_READ";
  if (!query.search.empty()) path += "&" + http::query_string({{"name", query.search}});
  Answer<RepositoryPage> out;
  out.value.page = page;
  std::size_t left = limit;
  for (std::size_t start = (page - 1) * limit; left > 0;) {
    const auto answer = co_await calls_.page(
        access,
        {.path = path + "&limit=" + std::to_string(left) + "&start=" + std::to_string(start),
         .what = "repositories"},
        deadline, [](std::string_view body, const http::Headers&) -> Result<HostPage> {
          auto found = bitbucket_server::read_repositories(body);
          if (!found) return std::unexpected(std::move(found.error()));
          return HostPage{.repositories = std::move(found->items),
                          .size = found->size,
                          .has_next = found->next_start.has_value(),
                          .next_start = found->next_start};
        });
    if (!answer) co_return std::unexpected(answer.error());
    const auto& found = *answer->value;
    out.is_last_known = out.is_last_known || answer->is_last_known;
    for (std::size_t i = 0; i < found.repositories.size(); ++i) {
      if (out.value.repositories.size() < limit) {
        out.value.repositories.push_back(item_of(answer->value, i));
      }
    }
    out.value.has_next = found.has_next;
    left -= std::min(left, found.size);
    if (!found.next_start || *found.next_start <= start) break;
    start = *found.next_start;
  }
  co_return out;
}

Task<Result<Answer<Repository>>> BitbucketServer::repository(const GitAccess& access,
                                                             const RepositoryName& name,
                                                             Deadline deadline) {
  auto found = co_await calls_.get<Repository>(access, bitbucket_server::repository_path(name),
                                               "repository " + name.full(), deadline,
                                               bitbucket_server::read_repository);
  if (!found || !found->value.default_branch.empty()) co_return found;
  // 404 means an empty repository, or a server before 7.5, which has the other path.
  for (const auto* path : {"/default-branch", "/branches/default"}) {
    auto branch = co_await calls_.send(access,
                                       {.path = bitbucket_server::repository_path(name, path),
                                        .what = "default branch of " + name.full(),
                                        .also = {204, 404}},
                                       deadline);
    if (!branch) co_return std::unexpected(std::move(branch.error()));
    if (branch->status != 200) continue;
    if (auto read = bitbucket_server::read_ref(branch->body)) {
      found->value.default_branch = std::move(*read);
      break;
    }
  }
  co_return found;
}

Task<Result<Answer<BranchesAndTags>>> BitbucketServer::branches_and_tags(const GitAccess& access,
                                                                         const RepositoryName& name,
                                                                         Deadline deadline) {
  auto branches = co_await all_values<std::string>(
      access, bitbucket_server::repository_path(name, "/branches"), "branches of " + name.full(),
      kMaxRefs, deadline, bitbucket_server::read_refs);
  if (!branches) co_return std::unexpected(std::move(branches.error()));
  auto tags = co_await all_values<std::string>(
      access, bitbucket_server::repository_path(name, "/tags"), "tags of " + name.full(), kMaxRefs,
      deadline, bitbucket_server::read_refs);
  if (!tags) co_return std::unexpected(std::move(tags.error()));
  co_return joined(std::move(*branches), std::move(*tags));
}

Task<Result<Answer<FileContent>>> BitbucketServer::read_file(const GitAccess& access,
                                                             const RepositoryName& name,
                                                             const std::string& path,
                                                             const std::string& ref,
                                                             Deadline deadline) {
  if (auto checked = check_file_path(path); !checked) co_return std::unexpected(checked.error());
  if (auto checked = check_ref(ref); !checked) co_return std::unexpected(checked.error());
  auto answer =
      co_await calls_.send(access,
                           {.path = bitbucket_server::repository_path(
                                name, "/raw/" + encode_path(path) + "?at=" + percent_encode(ref)),
                            .what = "file " + path + " of " + name.full(),
                            .accept = "*/*",
                            .max_body = kMaxFile},
                           deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  Answer<FileContent> out;
  out.is_last_known = answer->is_last_known;
  out.value.path = path;
  out.value.revision = blob_id(answer->body);
  out.value.content = std::move(answer->body);
  co_return out;
}

Task<Result<Answer<bool>>> BitbucketServer::has(const GitAccess& access, const RepositoryName& name,
                                                std::string permission, Deadline deadline) {
  // The filters match other repositories, too: they compare the beginning of names.
  const auto what = "permissions for " + name.full();
  const auto found =
      calls_.whole(co_await all_values<Repository>(
                       access,
                       "/repos?" + http::query_string({{"permission", permission},
                                                       {"projectkey", name.owner},
                                                       {"name", name.name}}),
                       what, kMaxListed, deadline, bitbucket_server::read_repositories),
                   what);
  if (!found) co_return std::unexpected(found.error());
  const bool is_listed = std::ranges::any_of(found->value, [&](const Repository& repository) {
    return http::equal_ignoring_case(repository.full_name, name.full());
  });
  co_return Answer<bool>{is_listed, found->is_last_known};
}

Task<Result<Answer<Permissions>>> BitbucketServer::permissions(const GitAccess& access,
                                                               const RepositoryName& name,
                                                               Deadline deadline) {
  Answer<Permissions> out;
  auto seen = co_await calls_.send(access,
                                   {.path = bitbucket_server::repository_path(name),
                                    .what = "repository " + name.full(),
                                    .also = {404}},
                                   deadline);
  if (!seen) co_return std::unexpected(std::move(seen.error()));
  out.is_last_known = seen->is_last_known;
  out.value.read = seen->status == 200;
  if (!out.value.read) co_return out;
  auto write = co_await has(access, name, "REPO_WRITE", deadline);
  if (!write) co_return std::unexpected(std::move(write.error()));
  out.value.write = write->value;
  out.is_last_known = out.is_last_known || write->is_last_known;
  if (!write->value) co_return out;
  auto admin = co_await has(access, name, "REPO_ADMIN", deadline);
  if (!admin) co_return std::unexpected(std::move(admin.error()));
  out.value.admin = admin->value;
  out.is_last_known = out.is_last_known || admin->is_last_known;
  co_return out;
}

Task<Result<Repository>> BitbucketServer::create_repository(const GitAccess& access,
                                                            const NewRepository& repository,
                                                            Deadline deadline) {
  co_return co_await calls_.post<Repository>(
      access, "/projects/" + percent_encode(repository.name.owner) + "/repos",
      bitbucket_server::new_repository_body(repository), "new repository " + repository.name.full(),
      deadline, bitbucket_server::read_repository);
}

Task<Result<PullRequest>> BitbucketServer::create_pull_request(const GitAccess& access,
                                                               const RepositoryName& name,
                                                               const NewPullRequest& pull_request,
                                                               Deadline deadline) {
  for (const auto& ref : {pull_request.head, pull_request.base}) {
    if (auto checked = check_ref(ref); !checked) co_return std::unexpected(checked.error());
  }
  co_return co_await calls_.post<PullRequest>(
      access, bitbucket_server::repository_path(name, "/pull-requests"),
      bitbucket_server::new_pull_request_body(name, pull_request),
      "new pull request of " + name.full(), deadline, bitbucket_server::read_pull_request);
}

Task<Result<Answer<PullRequest>>> BitbucketServer::pull_request(const GitAccess& access,
                                                                const RepositoryName& name,
                                                                std::int64_t id,
                                                                Deadline deadline) {
  co_return co_await calls_.get<PullRequest>(
      access, bitbucket_server::repository_path(name, "/pull-requests/" + std::to_string(id)),
      "pull request " + std::to_string(id) + " of " + name.full(), deadline,
      bitbucket_server::read_pull_request);
}

Task<Result<void>> BitbucketServer::set_commit_status(const GitAccess& access,
                                                      const RepositoryName& name,
                                                      const std::string& sha,
                                                      const CommitStatus& status,
                                                      Deadline deadline) {
  if (auto checked = check_sha(sha); !checked) co_return std::unexpected(checked.error());
  // Build statuses have a separate interface outside of the API root, below the same "/rest".
  std::string rest = calls_.root().url.path;
  constexpr std::string_view kApi = "/api/1.0";
  if (rest.ends_with(kApi)) rest.resize(rest.size() - kApi.size());
  auto answer =
      co_await calls_.send(access,
                           {.method = "POST",
                            .path = "/build-status/1.0/commits/" + sha,
                            .body = bitbucket_server::commit_status_body(
                                status, "https://" + calls_.root().url.host_header() + "/"),
                            .what = "status of commit " + sha + " of " + name.full(),
                            .other_root = rest},
                           deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  co_return Result<void>();
}

Task<Result<Webhook>> BitbucketServer::create_webhook(const GitAccess& access,
                                                      const RepositoryName& name,
                                                      const NewWebhook& webhook,
                                                      Deadline deadline) {
  co_return co_await calls_.post<Webhook>(
      access, bitbucket_server::repository_path(name, "/webhooks"),
      bitbucket_server::new_webhook_body(webhook), "new webhook of " + name.full(), deadline,
      bitbucket_server::read_webhook);
}

Task<Result<Answer<std::vector<Webhook>>>> BitbucketServer::webhooks(const GitAccess& access,
                                                                     const RepositoryName& name,
                                                                     Deadline deadline) {
  const auto what = "webhooks of " + name.full();
  co_return calls_.whole(
      co_await all_values<Webhook>(access, bitbucket_server::repository_path(name, "/webhooks"),
                                   what, kMaxListed, deadline, bitbucket_server::read_webhooks),
      what);
}

Task<Result<void>> BitbucketServer::delete_webhook(const GitAccess& access,
                                                   const RepositoryName& name,
                                                   const std::string& id, Deadline deadline) {
  if (auto checked = check_webhook_id(id); !checked) co_return std::unexpected(checked.error());
  auto answer =
      co_await calls_.send(access,
                           {.method = "DELETE",
                            .path = bitbucket_server::repository_path(name, "/webhooks/" + id),
                            .what = "webhook " + id + " of " + name.full()},
                           deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  co_return Result<void>();
}

Task<Result<TokenCheck>> BitbucketServer::check_token(const GitAccess& access, TokenUse use,
                                                      Deadline deadline) {
  auto profile = co_await who_am_i(access, deadline);
  if (!profile) co_return std::unexpected(std::move(profile.error()));
  TokenCheck check{.profile = std::move(profile->value)};
  if (use == TokenUse::runtime) {
    auto probe =
        co_await calls_.send(access,
                             {.method = "POST",
                              .path = "/users/" + percent_encode(check.profile.login) + "/repos",
                              .body = R"({"name":"!invalid"})",
                              .what = "right to administer repositories",
                              .also = {400, 401, 403}},
                             deadline);
    if (!probe) co_return std::unexpected(std::move(probe.error()));
    if (probe->status != 400) check.missing.emplace_back("repository admin");
    co_return check;
  }
  auto writable = co_await calls_.get<bitbucket_server::Page<Repository>>(
      access, "/repos?permission=REPO_WRITE&limit=1", "repositories that may be written", deadline,
      bitbucket_server::read_repositories);
  if (!writable) co_return std::unexpected(std::move(writable.error()));
  if (writable->value.size == 0) check.missing.emplace_back("repository write");
  co_return check;
}

}  // namespace gitops::app_proxy
