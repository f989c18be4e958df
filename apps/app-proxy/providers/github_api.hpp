#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/providers/git_host_client.hpp"
#include "app-proxy/providers/git_types.hpp"

// Common parts of GitHub's REST API version 2022-11-28 (docs.github.com/rest) and Gitea's version 1
// (docs.gitea.com/api), which has most of GitHub's forms. Pure.
namespace gitops::app_proxy::github {

// Requests.
std::string repository_path(const RepositoryName& name, std::string_view rest = {});
std::string new_repository_body(const NewRepository& repository);
std::string new_pull_request_body(const NewPullRequest& pull_request);
std::string commit_status_body(const CommitStatus& status);
// Body for a new webhook. `type` is the kind of hook, which Gitea requires.
std::string new_webhook_body(const NewWebhook& webhook, std::optional<std::string_view> type);
// Query for repositories of these owners whose name contains `text`.
std::string search_query(std::string_view text, const std::vector<std::string>& owners);

// Responses. `host` is for the no-reply address.
Result<Profile> read_profile(std::string_view body, std::string_view host);
// Returns the primary address from GET /user/emails; empty when there is none.
Result<std::string> read_primary_mail(std::string_view body);
Result<std::vector<Organisation>> read_organisations(std::string_view body);
Result<Repository> read_repository(std::string_view body);
Result<std::vector<Repository>> read_repositories(std::string_view body);
struct SearchResult {
  std::vector<Repository> repositories;
  std::size_t total = 0;
};
// Parses {"items": […], "total_count"} of GitHub or {"data": […]} of Gitea. `unavailable` when
// GitHub has searched only a part in its time.
Result<SearchResult> read_search(std::string_view body);
Result<std::vector<std::string>> read_names(std::string_view body);
Result<FileContent> read_file(std::string_view body, std::string_view path);
Result<PullRequest> read_pull_request(std::string_view body, const RepositoryName& name);
Result<Webhook> read_webhook(std::string_view body);
Result<std::vector<Webhook>> read_webhooks(std::string_view body);

// Returns the scopes for `use` that a classic token lacks in X-OAuth-Scopes.
std::vector<std::string> missing_scopes(std::string_view scopes, TokenUse use);

}  // namespace gitops::app_proxy::github
