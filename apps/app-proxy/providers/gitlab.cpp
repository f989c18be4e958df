#include "app-proxy/providers/gitlab.hpp"

#include <utility>

#include "app-proxy/providers/gitlab_api.hpp"
#include "app-proxy/providers/host_json.hpp"
#include "common/core/encoding.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kPageLimit = 100;

}  // namespace

GitLab::GitLab(GitHostClient& client, ApiRoot root)
    : calls_(client, std::move(root), AuthStyle::bearer, "application/json") {}

Task<Result<Answer<Profile>>> GitLab::who_am_i(const GitAccess& access, Deadline deadline) {
  const auto host = calls_.root().web_host();
  co_return co_await calls_.get<Profile>(
      access, "/user", "user of the Git token", deadline,
      [&host](std::string_view body) { return gitlab::read_user(body, host); });
}

Task<Result<Answer<std::vector<Organisation>>>> GitLab::organisations(const GitAccess& access,
                                                                      Deadline deadline) {
  co_return calls_.whole(co_await calls_.all_pages<Organisation>(
                             access, "/groups?min_access_level=30", "per_page", kPageLimit,
                             "groups", kMaxListed, deadline, gitlab::read_groups),
                         "groups");
}

Task<Result<Answer<RepositoryPage>>> GitLab::repositories(const GitAccess& access,
                                                          const RepositoryQuery& query,
                                                          Deadline deadline) {
  std::string path = "/projects?membership=true&simple=false&order_by=last_activity_at";
  if (!query.search.empty()) path += "&" + http::query_string({{"search", query.search}});
  co_return co_await gather_page(
      query, {.items = kPageLimit}, [&](std::size_t page, std::size_t size) {
        return calls_.page(
            access,
            {.path = path + "&per_page=" + std::to_string(size) + "&page=" + std::to_string(page),
             .what = "projects"},
            deadline, [](std::string_view body, const http::Headers& headers) {
              return linked_page(gitlab::read_projects(body), headers);
            });
      });
}

Task<Result<Answer<Repository>>> GitLab::repository(const GitAccess& access,
                                                    const RepositoryName& name, Deadline deadline) {
  co_return co_await calls_.get<Repository>(
      access, gitlab::project_path(name), "project " + name.full(), deadline, gitlab::read_project);
}

Task<Result<Answer<BranchesAndTags>>> GitLab::branches_and_tags(const GitAccess& access,
                                                                const RepositoryName& name,
                                                                Deadline deadline) {
  auto branches = co_await calls_.all_pages<std::string>(
      access, gitlab::project_path(name, "/repository/branches"), "per_page", kPageLimit,
      "branches of " + name.full(), kMaxRefs, deadline, gitlab::read_names);
  if (!branches) co_return std::unexpected(std::move(branches.error()));
  auto tags = co_await calls_.all_pages<std::string>(
      access, gitlab::project_path(name, "/repository/tags"), "per_page", kPageLimit,
      "tags of " + name.full(), kMaxRefs, deadline, gitlab::read_names);
  if (!tags) co_return std::unexpected(std::move(tags.error()));
  co_return joined(std::move(*branches), std::move(*tags));
}

Task<Result<Answer<FileContent>>> GitLab::read_file(const GitAccess& access,
                                                    const RepositoryName& name,
                                                    const std::string& path, const std::string& ref,
                                                    Deadline deadline) {
  if (auto checked = check_file_path(path); !checked) co_return std::unexpected(checked.error());
  if (auto checked = check_ref(ref); !checked) co_return std::unexpected(checked.error());
  co_return co_await calls_.get<FileContent>(
      access,
      gitlab::project_path(
          name, "/repository/files/" + percent_encode(path) + "?ref=" + percent_encode(ref)),
      "file " + path + " of " + name.full(), deadline,
      [&path](std::string_view body) { return gitlab::read_file(body, path); });
}

Task<Result<Answer<Permissions>>> GitLab::permissions(const GitAccess& access,
                                                      const RepositoryName& name,
                                                      Deadline deadline) {
  auto found = co_await repository(access, name, deadline);
  if (!found) {
    if (found.error().code == ErrorCode::not_found) co_return Answer<Permissions>{};
    co_return std::unexpected(std::move(found.error()));
  }
  co_return Answer<Permissions>{found->value.permissions.value_or(Permissions{.read = true}),
                                found->is_last_known};
}

Task<Result<Repository>> GitLab::create_repository(const GitAccess& access,
                                                   const NewRepository& repository,
                                                   Deadline deadline) {
  const auto what = "new project " + repository.name.full();
  const auto profile = co_await who_am_i(access, deadline);
  if (!profile) co_return std::unexpected(profile.error());
  std::string namespace_id;
  if (!http::equal_ignoring_case(profile->value.login, repository.name.owner)) {
    auto found = co_await calls_.get<std::string>(
        access, "/namespaces/" + percent_encode(repository.name.owner),
        "group " + repository.name.owner, deadline, gitlab::read_namespace);
    if (!found) co_return std::unexpected(std::move(found.error()));
    namespace_id = std::move(found->value);
  }
  auto made = co_await calls_.post<Repository>(access, "/projects",
                                               gitlab::new_project_body(repository, namespace_id),
                                               what, deadline, gitlab::read_project);
  if (!made && made.error().http_status == 400) {
    // The host has one status for every error in a new project.
    if (co_await this->repository(access, repository.name, deadline)) {
      made.error().code = ErrorCode::conflict;
      made.error().subcode = git_errors::kConflict;
    }
  }
  co_return made;
}

Task<Result<PullRequest>> GitLab::create_pull_request(const GitAccess& access,
                                                      const RepositoryName& name,
                                                      const NewPullRequest& pull_request,
                                                      Deadline deadline) {
  for (const auto& ref : {pull_request.head, pull_request.base}) {
    if (auto checked = check_ref(ref); !checked) co_return std::unexpected(checked.error());
  }
  co_return co_await calls_.post<PullRequest>(access, gitlab::project_path(name, "/merge_requests"),
                                              gitlab::new_merge_request_body(pull_request),
                                              "new merge request of " + name.full(), deadline,
                                              gitlab::read_merge_request);
}

Task<Result<Answer<PullRequest>>> GitLab::pull_request(const GitAccess& access,
                                                       const RepositoryName& name, std::int64_t id,
                                                       Deadline deadline) {
  co_return co_await calls_.get<PullRequest>(
      access, gitlab::project_path(name, "/merge_requests/" + std::to_string(id)),
      "merge request " + std::to_string(id) + " of " + name.full(), deadline,
      gitlab::read_merge_request);
}

Task<Result<void>> GitLab::set_commit_status(const GitAccess& access, const RepositoryName& name,
                                             const std::string& sha, const CommitStatus& status,
                                             Deadline deadline) {
  if (auto checked = check_sha(sha); !checked) co_return std::unexpected(checked.error());
  auto answer = co_await calls_.send(access,
                                     {.method = "POST",
                                      .path = gitlab::project_path(name, "/statuses/" + sha),
                                      .body = gitlab::commit_status_body(status),
                                      .what = "status of commit " + sha + " of " + name.full()},
                                     deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  co_return Result<void>();
}

Task<Result<Webhook>> GitLab::create_webhook(const GitAccess& access, const RepositoryName& name,
                                             const NewWebhook& webhook, Deadline deadline) {
  co_return co_await calls_.post<Webhook>(
      access, gitlab::project_path(name, "/hooks"), gitlab::new_hook_body(webhook),
      "new webhook of " + name.full(), deadline, gitlab::read_hook);
}

Task<Result<Answer<std::vector<Webhook>>>> GitLab::webhooks(const GitAccess& access,
                                                            const RepositoryName& name,
                                                            Deadline deadline) {
  const auto what = "webhooks of " + name.full();
  co_return calls_.whole(co_await calls_.all_pages<Webhook>(
                             access, gitlab::project_path(name, "/hooks"), "per_page", kPageLimit,
                             what, kMaxListed, deadline, gitlab::read_hooks),
                         what);
}

Task<Result<void>> GitLab::delete_webhook(const GitAccess& access, const RepositoryName& name,
                                          const std::string& id, Deadline deadline) {
  if (auto checked = check_webhook_id(id); !checked) co_return std::unexpected(checked.error());
  auto answer = co_await calls_.send(access,
                                     {.method = "DELETE",
                                      .path = gitlab::project_path(name, "/hooks/" + id),
                                      .what = "webhook " + id + " of " + name.full()},
                                     deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  co_return Result<void>();
}

Task<Result<TokenCheck>> GitLab::check_token(const GitAccess& access, TokenUse use,
                                             Deadline deadline) {
  auto answer =
      co_await calls_.send(access, {.path = "/user", .what = "user of the Git token"}, deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto profile = gitlab::read_user(answer->body, calls_.root().web_host());
  if (!profile) {
    co_return std::unexpected(calls_.unreadable("user of the Git token", profile.error()));
  }
  TokenCheck check{.profile = std::move(*profile)};
  if (const auto bot = gitlab::is_project_bot(answer->body); bot && *bot) {
    check.missing.emplace_back("a token of a user or of a group: this one belongs to a project");
    co_return check;
  }
  auto self = co_await calls_.send(access,
                                   {.path = "/personal_access_tokens/self",
                                    .what = "scopes of the Git token",
                                    .also = {400, 401, 403, 404}},
                                   deadline);
  if (!self) co_return std::unexpected(std::move(self.error()));
  if (self->status == 200) {
    if (auto missing = gitlab::read_missing_scopes(self->body, use)) {
      check.missing = std::move(*missing);
      co_return check;
    }
  }
  if (use == TokenUse::user) {
    check.permissions_known = false;
    co_return check;
  }
  // 400: the token has the scope "api", and the empty project is refused.
  auto probe = co_await calls_.send(access,
                                    {.method = "POST",
                                     .path = "/projects",
                                     .body = "{}",
                                     .what = "scope api of the Git token",
                                     .also = {400, 403}},
                                    deadline);
  if (!probe) co_return std::unexpected(std::move(probe.error()));
  if (probe->status == 403) check.missing.emplace_back("api");
  co_return check;
}

}  // namespace gitops::app_proxy
