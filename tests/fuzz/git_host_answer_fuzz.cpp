#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "app-proxy/providers/answer_cache.hpp"
#include "app-proxy/providers/bitbucket_api.hpp"
#include "app-proxy/providers/bitbucket_server_api.hpp"
#include "app-proxy/providers/git_error.hpp"
#include "app-proxy/providers/github_api.hpp"
#include "app-proxy/providers/gitlab_api.hpp"
#include "app-proxy/providers/page_range.hpp"
#include "app-proxy/providers/rate_budget.hpp"

// What a Git host might answer, read as every kind of answer. What comes out has names that can be
// part of a path, and URLs that a page may link to and that hold no credentials.
namespace {

using namespace gitops;
using namespace gitops::app_proxy;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_url(const std::string& url) {
  require(url.empty() || url.starts_with("https://") || url.starts_with("http://"));
  if (url.empty()) return;
  const auto parsed = http::parse_url(url);
  require(parsed && parsed->userinfo.empty());
}

void check(const Profile& profile) {
  require(!profile.id.empty() && !profile.login.empty() && !profile.name.empty());
  require(profile.mail.contains('@') && !profile.mail.contains('>') &&
          !profile.mail.contains('\n'));
  check_url(profile.avatar_url);
}

void check(const Repository& repository) {
  require(!repository.id.empty());
  require(parse_repository_name(repository.full_name).has_value());
  for (const auto* url :
       {&repository.clone_url, &repository.web_url, &repository.owner_avatar_url}) {
    check_url(*url);
  }
  require(!repository.ssh_url.starts_with('-'));
  require(repository.open_issues >= 0);
}

void check(const PullRequest& pull_request) {
  require(pull_request.id > 0);
  check_url(pull_request.url);
  check_url(pull_request.avatar_url);
  require(pull_request.is_merged || pull_request.merge_commit_sha.empty());
}

void check(const Webhook& webhook) {
  require(!webhook.id.empty());
  check_url(webhook.url);
}

void check(const std::string& name) {
  require(check_ref(name).has_value());
}
void check(const Organisation& organisation) {
  require(!organisation.name.empty());
}

template <class T>
void check_all(const std::vector<T>& items) {
  for (const auto& item : items) check(item);
}

template <class T>
void check(const Result<T>& result) {
  if (result) {
    check(*result);
  } else {
    require(!result.error().message.empty());
  }
}
template <class T>
void check_list(const Result<T>& result) {
  if (result) check_all(*result);
}
template <class T>
void check_page(const Result<T>& result) {
  if (result) check_all(result->items);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  check(github::read_profile(body, "github.com"));
  check(gitlab::read_user(body, "gitlab.com"));
  check(bitbucket::read_profile(body, "bitbucket.org"));
  check(bitbucket_server::read_user(body, "h.test"));
  (void)github::read_primary_mail(body);
  (void)bitbucket::read_primary_mail(body);
  check_list(github::read_organisations(body));
  check_list(gitlab::read_groups(body));
  check_page(bitbucket_server::read_projects(body));
  if (const auto workspaces = bitbucket::read_workspaces(body)) {
    for (const auto& slug : workspaces->items)
      require(parse_repository_name(slug + "/x").has_value());
  }
  check(github::read_repository(body));
  check(gitlab::read_project(body));
  check(bitbucket::read_repository(body));
  check(bitbucket_server::read_repository(body));
  check_list(github::read_repositories(body));
  check_list(gitlab::read_projects(body));
  check_page(bitbucket::read_repositories(body));
  check_page(bitbucket_server::read_repositories(body));
  if (const auto found = github::read_search(body)) check_all(found->repositories);
  check_list(github::read_names(body));
  check_list(gitlab::read_names(body));
  check_page(bitbucket::read_names(body));
  check_page(bitbucket_server::read_refs(body));
  (void)github::read_file(body, "a");
  (void)gitlab::read_file(body, "a");
  check(github::read_pull_request(body, {"a", "b"}));
  check(gitlab::read_merge_request(body));
  check(bitbucket::read_pull_request(body));
  check(bitbucket_server::read_pull_request(body));
  check(github::read_webhook(body));
  check_list(github::read_webhooks(body));
  check_list(gitlab::read_hooks(body));
  check_page(bitbucket::read_webhooks(body));
  check_page(bitbucket_server::read_webhooks(body));
  (void)gitlab::read_missing_scopes(body, TokenUse::user);
  (void)bitbucket::read_permissions(body, "a/b");
  (void)bitbucket::is_folder(body);
  if (const auto commit = bitbucket::read_branch_commit(body)) {
    require(check_sha(*commit).has_value());
  }
  const auto said = host_message(body, "ghp_canary");
  require(said.size() <= 204 && !said.contains("ghp_canary") && !said.contains('\n'));
  // As header fields.
  (void)github::missing_scopes(body, TokenUse::runtime);
  (void)bitbucket::missing_scopes(body);
  (void)next_link({{"Link", std::string(body)}});
  const auto fresh = fresh_for({{"Cache-Control", std::string(body)}});
  require(fresh.count() >= 0 && fresh <= std::chrono::minutes(1));
  RateBudget budget;
  const http::Response response{.status = 403,
                                .headers = {{"X-RateLimit-Remaining", "0"},
                                            {"X-RateLimit-Reset", std::string(body)},
                                            {"Retry-After", std::string(body.substr(0, 20))}},
                                .body = {}};
  const Clock::time_point now{std::chrono::hours(1)};
  (void)budget.note("core", response, now, WallTime(std::chrono::hours(1)));
  const auto wait = budget.wait("core", Urgency::person, now);
  require(!wait || *wait <= std::chrono::hours(1));
  return 0;
}
