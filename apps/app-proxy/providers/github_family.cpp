#include "app-proxy/providers/github_family.hpp"

#include <string>

#include "app-proxy/providers/github_api.hpp"
#include "app-proxy/providers/host_json.hpp"
#include "common/core/encoding.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

std::string shown(const RepositoryName& name) {
  return "repository " + name.full();
}

bool is_exists_already(const Error& error) {
  return error.http_status == 422 || error.http_status == 409;
}

}  // namespace

GitHubFamily::GitHubFamily(GitHostClient& client, ApiRoot root, Dialect dialect)
    : calls_(client, std::move(root), dialect.style, dialect.accept),
      dialect_(std::move(dialect)) {}

std::string GitHubFamily::page_size_name() const {
  return dialect_.hook_type ? "limit" : "per_page";
}

Task<Result<Answer<std::vector<Organisation>>>> GitHubFamily::organisations(const GitAccess& access,
                                                                            Deadline deadline) {
  const std::string size = page_size_name();
  co_return calls_.whole(co_await calls_.all_pages<Organisation>(
                             access, "/user/orgs", size, dialect_.page_limit, "organisations",
                             kMaxListed, deadline, github::read_organisations),
                         "organisations");
}

Task<Result<Answer<Repository>>> GitHubFamily::repository(const GitAccess& access,
                                                          const RepositoryName& name,
                                                          Deadline deadline) {
  co_return co_await calls_.get<Repository>(access, github::repository_path(name), shown(name),
                                            deadline, github::read_repository);
}

Task<Result<Answer<BranchesAndTags>>> GitHubFamily::branches_and_tags(const GitAccess& access,
                                                                      const RepositoryName& name,
                                                                      Deadline deadline) {
  const std::string size = page_size_name();
  auto branches = co_await calls_.all_pages<std::string>(
      access, github::repository_path(name, "/branches"), size, dialect_.page_limit,
      "branches of " + name.full(), kMaxRefs, deadline, github::read_names);
  if (!branches) co_return std::unexpected(std::move(branches.error()));
  auto tags = co_await calls_.all_pages<std::string>(
      access, github::repository_path(name, "/tags"), size, dialect_.page_limit,
      "tags of " + name.full(), kMaxRefs, deadline, github::read_names);
  if (!tags) co_return std::unexpected(std::move(tags.error()));
  co_return joined(std::move(*branches), std::move(*tags));
}

Task<Result<Answer<FileContent>>> GitHubFamily::read_file(const GitAccess& access,
                                                          const RepositoryName& name,
                                                          const std::string& path,
                                                          const std::string& ref,
                                                          Deadline deadline) {
  if (auto checked = check_file_path(path); !checked) co_return std::unexpected(checked.error());
  if (auto checked = check_ref(ref); !checked) co_return std::unexpected(checked.error());
  co_return co_await calls_.get<FileContent>(
      access,
      github::repository_path(name,
                              "/contents/" + encode_path(path) + "?ref=" + percent_encode(ref)),
      "file " + path + " of " + name.full(), deadline,
      [&path](std::string_view body) { return github::read_file(body, path); });
}

Task<Result<Answer<Permissions>>> GitHubFamily::permissions(const GitAccess& access,
                                                            const RepositoryName& name,
                                                            Deadline deadline) {
  auto found = co_await repository(access, name, deadline);
  if (!found) {
    if (found.error().code == ErrorCode::not_found) co_return Answer<Permissions>{};
    co_return std::unexpected(std::move(found.error()));
  }
  // A token that sees the repository can read it.
  co_return Answer<Permissions>{found->value.permissions.value_or(Permissions{.read = true}),
                                found->is_last_known};
}

Task<Result<Repository>> GitHubFamily::create_repository(const GitAccess& access,
                                                         const NewRepository& repository,
                                                         Deadline deadline) {
  const auto profile = co_await who_am_i(access, deadline);
  if (!profile) co_return std::unexpected(profile.error());
  const bool is_own = http::equal_ignoring_case(profile->value.login, repository.name.owner);
  auto made = co_await calls_.post<Repository>(
      access, is_own ? "/user/repos" : "/orgs/" + percent_encode(repository.name.owner) + "/repos",
      github::new_repository_body(repository), "new " + shown(repository.name), deadline,
      github::read_repository);
  if (!made && is_exists_already(made.error())) {
    // GitHub has one status for every error in a new repository.
    if (co_await this->repository(access, repository.name, deadline)) {
      Error error = made.error();
      error.code = ErrorCode::conflict;
      error.subcode = git_errors::kConflict;
      co_return std::unexpected(std::move(error));
    }
  }
  co_return made;
}

Task<Result<PullRequest>> GitHubFamily::create_pull_request(const GitAccess& access,
                                                            const RepositoryName& name,
                                                            const NewPullRequest& pull_request,
                                                            Deadline deadline) {
  for (const auto& ref : {pull_request.head, pull_request.base}) {
    if (auto checked = check_ref(ref); !checked) co_return std::unexpected(checked.error());
  }
  auto made = co_await calls_.post<PullRequest>(
      access, github::repository_path(name, "/pulls"), github::new_pull_request_body(pull_request),
      "new pull request of " + name.full(), deadline,
      [&name](std::string_view body) { return github::read_pull_request(body, name); });
  // GitHub's 422 lists one error with this message.
  if (!made && made.error().http_status == 422 && made.error().message.contains("already exists")) {
    made.error().code = ErrorCode::conflict;
    made.error().subcode = git_errors::kConflict;
  }
  co_return made;
}

Task<Result<Answer<PullRequest>>> GitHubFamily::pull_request(const GitAccess& access,
                                                             const RepositoryName& name,
                                                             std::int64_t id, Deadline deadline) {
  co_return co_await calls_.get<PullRequest>(
      access, github::repository_path(name, "/pulls/" + std::to_string(id)),
      "pull request " + std::to_string(id) + " of " + name.full(), deadline,
      [&name](std::string_view body) { return github::read_pull_request(body, name); });
}

Task<Result<void>> GitHubFamily::set_commit_status(const GitAccess& access,
                                                   const RepositoryName& name,
                                                   const std::string& sha,
                                                   const CommitStatus& status, Deadline deadline) {
  if (auto checked = check_sha(sha); !checked) co_return std::unexpected(checked.error());
  auto answer = co_await calls_.send(access,
                                     {.method = "POST",
                                      .path = github::repository_path(name, "/statuses/" + sha),
                                      .body = github::commit_status_body(status),
                                      .what = "status of commit " + sha + " of " + name.full()},
                                     deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  co_return Result<void>();
}

Task<Result<Webhook>> GitHubFamily::create_webhook(const GitAccess& access,
                                                   const RepositoryName& name,
                                                   const NewWebhook& webhook, Deadline deadline) {
  co_return co_await calls_.post<Webhook>(access, github::repository_path(name, "/hooks"),
                                          github::new_webhook_body(webhook, dialect_.hook_type),
                                          "new webhook of " + name.full(), deadline,
                                          github::read_webhook);
}

Task<Result<Answer<std::vector<Webhook>>>> GitHubFamily::webhooks(const GitAccess& access,
                                                                  const RepositoryName& name,
                                                                  Deadline deadline) {
  const std::string size = page_size_name();
  const auto what = "webhooks of " + name.full();
  co_return calls_.whole(
      co_await calls_.all_pages<Webhook>(access, github::repository_path(name, "/hooks"), size,
                                         dialect_.page_limit, what, kMaxListed, deadline,
                                         github::read_webhooks),
      what);
}

Task<Result<void>> GitHubFamily::delete_webhook(const GitAccess& access, const RepositoryName& name,
                                                const std::string& id, Deadline deadline) {
  if (auto checked = check_webhook_id(id); !checked) co_return std::unexpected(checked.error());
  auto answer =
      co_await calls_.send(access,
                           {.method = "DELETE",
                            .path = github::repository_path(name, "/hooks/" + percent_encode(id)),
                            .what = "webhook " + id + " of " + name.full()},
                           deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  co_return Result<void>();
}

}  // namespace gitops::app_proxy
