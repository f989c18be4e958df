#include "app-proxy/providers/bitbucket.hpp"

#include <utility>

#include "app-proxy/providers/bitbucket_api.hpp"
#include "app-proxy/providers/host_json.hpp"
#include "common/core/encoding.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxFile = 5UL * 1024 * 1024;

}  // namespace

Bitbucket::Bitbucket(GitHostClient& client, ApiRoot root)
    : calls_(client, std::move(root), AuthStyle::basic_or_bearer, "application/json") {}

Task<Result<Answer<Profile>>> Bitbucket::who_am_i(const GitAccess& access, Deadline deadline) {
  const auto host = calls_.root().web_host();
  auto profile = co_await calls_.get<Profile>(
      access, "/user", "user of the Git token", deadline,
      [&host](std::string_view body) { return bitbucket::read_profile(body, host); });
  if (!profile) co_return profile;
  co_return co_await calls_.with_primary_mail(access, std::move(*profile), deadline,
                                              bitbucket::read_primary_mail);
}

Task<Result<Answer<std::vector<std::string>>>> Bitbucket::workspaces(const GitAccess& access,
                                                                     Deadline deadline) {
  std::string base = "/user/workspaces?pagelen=100";
  Answer<std::vector<std::string>> out;
  for (std::size_t page = 1;; ++page) {
    auto answer = co_await calls_.send(
        access,
        {.path = base + "&page=" + std::to_string(page), .what = "workspaces", .also = {404, 410}},
        deadline);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    if (answer->status != 200) {
      if (base.starts_with("/workspaces")) {
        co_return std::unexpected(bad_answer({calls_.root(), "workspaces"}, "no list"));
      }
      base = "/workspaces?role=member&pagelen=100";
      page = 0;
      continue;
    }
    auto found = bitbucket::read_workspaces(answer->body);
    if (!found) co_return std::unexpected(calls_.unreadable("workspaces", found.error()));
    out.is_last_known = out.is_last_known || answer->is_last_known;
    if (!add_page(out, std::move(found->items), kMaxListed)) break;
    if (!found->has_next || found->size == 0) break;
  }
  co_return calls_.whole(Result<Answer<std::vector<std::string>>>(std::move(out)), "workspaces");
}

Task<Result<Answer<std::vector<Organisation>>>> Bitbucket::organisations(const GitAccess& access,
                                                                         Deadline deadline) {
  auto found = co_await workspaces(access, deadline);
  if (!found) co_return std::unexpected(std::move(found.error()));
  Answer<std::vector<Organisation>> out;
  out.is_last_known = found->is_last_known;
  for (auto& workspace : found->value) out.value.push_back({std::move(workspace)});
  co_return out;
}

Task<Result<Answer<RepositoryPage>>> Bitbucket::repositories(const GitAccess& access,
                                                             const RepositoryQuery& query,
                                                             Deadline deadline) {
  auto owners = co_await workspaces(access, deadline);
  if (!owners) co_return std::unexpected(std::move(owners.error()));
  std::string filter = "?role=member&sort=-updated_on&pagelen=100";
  if (!query.search.empty()) {
    filter += "&" + http::query_string({{"q", bitbucket::name_filter(query.search)}});
  }
  // The host has no list of all workspaces.
  auto page =
      co_await gather_lists(query, owners->value.size(), [&](std::size_t list, std::size_t number) {
        const auto& owner = owners->value[list];
        return calls_.page(access,
                           {.path = "/repositories/" + percent_encode(owner) + filter +
                                    "&page=" + std::to_string(number),
                            .what = "repositories of " + owner},
                           deadline,
                           [](std::string_view body, const http::Headers&) -> Result<HostPage> {
                             auto found = bitbucket::read_repositories(body);
                             if (!found) return std::unexpected(std::move(found.error()));
                             return HostPage{.repositories = std::move(found->items),
                                             .size = found->size,
                                             .has_next = found->has_next,
                                             .total = found->total};
                           });
      });
  if (page) page->is_last_known = page->is_last_known || owners->is_last_known;
  co_return page;
}

Task<Result<Answer<Repository>>> Bitbucket::repository(const GitAccess& access,
                                                       const RepositoryName& name,
                                                       Deadline deadline) {
  co_return co_await calls_.get<Repository>(access, bitbucket::repository_path(name),
                                            "repository " + name.full(), deadline,
                                            bitbucket::read_repository);
}

Task<Result<Answer<std::vector<std::string>>>> Bitbucket::names(const GitAccess& access,
                                                                const RepositoryName& name,
                                                                std::string rest,
                                                                Deadline deadline) {
  const auto what = "branches and tags of " + name.full();
  Answer<std::vector<std::string>> out;
  for (std::size_t page = 1;; ++page) {
    auto answer = co_await calls_.send(access,
                                       {.path = bitbucket::repository_path(name, rest) +
                                                "?pagelen=100&page=" + std::to_string(page),
                                        .what = what},
                                       deadline);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    auto found = bitbucket::read_names(answer->body);
    if (!found) co_return std::unexpected(calls_.unreadable(what, found.error()));
    out.is_last_known = out.is_last_known || answer->is_last_known;
    if (!add_page(out, std::move(found->items), kMaxRefs)) break;
    if (!found->has_next || found->size == 0) break;
  }
  co_return out;
}

Task<Result<Answer<BranchesAndTags>>> Bitbucket::branches_and_tags(const GitAccess& access,
                                                                   const RepositoryName& name,
                                                                   Deadline deadline) {
  auto branches = co_await names(access, name, "/refs/branches", deadline);
  if (!branches) co_return std::unexpected(std::move(branches.error()));
  auto tags = co_await names(access, name, "/refs/tags", deadline);
  if (!tags) co_return std::unexpected(std::move(tags.error()));
  co_return joined(std::move(*branches), std::move(*tags));
}

Task<Result<Answer<FileContent>>> Bitbucket::read_file(const GitAccess& access,
                                                       const RepositoryName& name,
                                                       const std::string& path,
                                                       const std::string& ref, Deadline deadline) {
  if (auto checked = check_file_path(path); !checked) co_return std::unexpected(checked.error());
  if (auto checked = check_ref(ref); !checked) co_return std::unexpected(checked.error());
  std::string at = ref;
  if (ref.contains('/')) {
    // The path follows a single segment, so the commit is used instead of the name.
    const auto commit_of = [&](const char* refs) {
      return calls_.get<std::string>(
          access, bitbucket::repository_path(name, refs + encode_path(ref)),
          "branch or tag " + ref + " of " + name.full(), deadline, bitbucket::read_branch_commit);
    };
    auto commit = co_await commit_of("/refs/branches/");
    if (!commit && commit.error().code == ErrorCode::not_found) {
      commit = co_await commit_of("/refs/tags/");
    }
    if (!commit) co_return std::unexpected(std::move(commit.error()));
    at = std::move(commit->value);
  }
  const auto what = "file " + path + " of " + name.full();
  auto answer =
      co_await calls_.send(access,
                           {.path = bitbucket::repository_path(
                                name, "/src/" + percent_encode(at) + "/" + encode_path(path)),
                            .what = what,
                            .accept = "*/*",
                            .max_body = kMaxFile},
                           deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  if (bitbucket::is_folder(answer->body)) {
    co_return std::unexpected(calls_.unreadable(
        what, {.code = ErrorCode::invalid_argument, .message = "this is no file"}));
  }
  Answer<FileContent> out;
  out.is_last_known = answer->is_last_known;
  out.value.path = path;
  out.value.revision = blob_id(answer->body);
  out.value.content = std::move(answer->body);
  co_return out;
}

Task<Result<Answer<Permissions>>> Bitbucket::permissions(const GitAccess& access,
                                                         const RepositoryName& name,
                                                         Deadline deadline) {
  const auto what = "permissions for " + name.full();
  const auto query =
      "?" + http::query_string({{"q", "repository.full_name=\"" + name.full() + "\""}});
  auto answer = co_await calls_.send(access,
                                     {.path = "/user/workspaces/" + percent_encode(name.owner) +
                                              "/permissions/repositories" + query,
                                      .what = what,
                                      .also = {404, 410}},
                                     deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  if (answer->status != 200) {
    answer = co_await calls_.send(
        access, {.path = "/user/permissions/repositories" + query, .what = what}, deadline);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
  }
  auto found = bitbucket::read_permissions(answer->body, name.full());
  if (!found) co_return std::unexpected(calls_.unreadable(what, found.error()));
  co_return Answer<Permissions>{*found, answer->is_last_known};
}

Task<Result<Repository>> Bitbucket::create_repository(const GitAccess& access,
                                                      const NewRepository& repository,
                                                      Deadline deadline) {
  auto made = co_await calls_.post<Repository>(access, bitbucket::repository_path(repository.name),
                                               bitbucket::new_repository_body(repository),
                                               "new repository " + repository.name.full(), deadline,
                                               bitbucket::read_repository);
  if (!made && made.error().http_status == 400) {
    // The host has one status for every error in a new repository.
    if (co_await this->repository(access, repository.name, deadline)) {
      made.error().code = ErrorCode::conflict;
      made.error().subcode = git_errors::kConflict;
    }
  }
  co_return made;
}

Task<Result<PullRequest>> Bitbucket::create_pull_request(const GitAccess& access,
                                                         const RepositoryName& name,
                                                         const NewPullRequest& pull_request,
                                                         Deadline deadline) {
  for (const auto& ref : {pull_request.head, pull_request.base}) {
    if (auto checked = check_ref(ref); !checked) co_return std::unexpected(checked.error());
  }
  co_return co_await calls_.post<PullRequest>(
      access, bitbucket::repository_path(name, "/pullrequests"),
      bitbucket::new_pull_request_body(pull_request), "new pull request of " + name.full(),
      deadline, bitbucket::read_pull_request);
}

Task<Result<Answer<PullRequest>>> Bitbucket::pull_request(const GitAccess& access,
                                                          const RepositoryName& name,
                                                          std::int64_t id, Deadline deadline) {
  co_return co_await calls_.get<PullRequest>(
      access, bitbucket::repository_path(name, "/pullrequests/" + std::to_string(id)),
      "pull request " + std::to_string(id) + " of " + name.full(), deadline,
      bitbucket::read_pull_request);
}

Task<Result<void>> Bitbucket::set_commit_status(const GitAccess& access, const RepositoryName& name,
                                                const std::string& sha, const CommitStatus& status,
                                                Deadline deadline) {
  if (auto checked = check_sha(sha); !checked) co_return std::unexpected(checked.error());
  auto answer = co_await calls_.send(
      access,
      {.method = "POST",
       .path = bitbucket::repository_path(name, "/commit/" + sha + "/statuses/build"),
       .body = bitbucket::commit_status_body(
           status, "https://" + calls_.root().web_host() + "/" + encode_path(name.full())),
       .what = "status of commit " + sha + " of " + name.full()},
      deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  co_return Result<void>();
}

Task<Result<Webhook>> Bitbucket::create_webhook(const GitAccess& access, const RepositoryName& name,
                                                const NewWebhook& webhook, Deadline deadline) {
  co_return co_await calls_.post<Webhook>(
      access, bitbucket::repository_path(name, "/hooks"), bitbucket::new_webhook_body(webhook),
      "new webhook of " + name.full(), deadline, bitbucket::read_webhook);
}

Task<Result<Answer<std::vector<Webhook>>>> Bitbucket::webhooks(const GitAccess& access,
                                                               const RepositoryName& name,
                                                               Deadline deadline) {
  const auto what = "webhooks of " + name.full();
  Answer<std::vector<Webhook>> out;
  for (std::size_t page = 1;; ++page) {
    auto answer = co_await calls_.send(access,
                                       {.path = bitbucket::repository_path(name, "/hooks") +
                                                "?pagelen=100&page=" + std::to_string(page),
                                        .what = what},
                                       deadline);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    auto found = bitbucket::read_webhooks(answer->body);
    if (!found) co_return std::unexpected(calls_.unreadable(what, found.error()));
    out.is_last_known = out.is_last_known || answer->is_last_known;
    if (!add_page(out, std::move(found->items), kMaxListed)) break;
    if (!found->has_next || found->size == 0) break;
  }
  co_return calls_.whole(Result<Answer<std::vector<Webhook>>>(std::move(out)), what);
}

Task<Result<void>> Bitbucket::delete_webhook(const GitAccess& access, const RepositoryName& name,
                                             const std::string& id, Deadline deadline) {
  if (auto checked = check_webhook_id(id); !checked) co_return std::unexpected(checked.error());
  auto answer = co_await calls_.send(
      access,
      {.method = "DELETE",
       .path = bitbucket::repository_path(name, "/hooks/" + percent_encode(id)),
       .what = "webhook " + id + " of " + name.full()},
      deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  co_return Result<void>();
}

Task<Result<TokenCheck>> Bitbucket::check_token(const GitAccess& access, TokenUse /*use*/,
                                                Deadline deadline) {
  auto profile = co_await who_am_i(access, deadline);
  if (!profile) co_return std::unexpected(std::move(profile.error()));
  TokenCheck check{.profile = std::move(profile->value)};
  auto answer =
      co_await calls_.send(access, {.path = "/user", .what = "scopes of the Git token"}, deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  const auto scopes = answer->headers.find("X-OAuth-Scopes");
  check.permissions_known = scopes.has_value();
  if (scopes) check.missing = bitbucket::missing_scopes(*scopes);
  co_return check;
}

}  // namespace gitops::app_proxy
