#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/providers/git_types.hpp"

// Requests and responses of Bitbucket Server's REST API 1.0
// (developer.atlassian.com/server/bitbucket/rest). Pure.
namespace gitops::app_proxy::bitbucket_server {

std::string repository_path(const RepositoryName& name, std::string_view rest = {});
std::string new_repository_body(const NewRepository& repository);
std::string new_pull_request_body(const RepositoryName& name, const NewPullRequest& pull_request);
std::string commit_status_body(const CommitStatus& status, std::string_view fallback_url);
std::string new_webhook_body(const NewWebhook& webhook);

Result<Profile> read_user(std::string_view body, std::string_view host);
// Values of a page of a list, and the start of the next page; unset on the last one.
template <class T>
struct Page {
  std::vector<T> items;
  std::size_t size = 0;  // items in the response, parsed or not
  std::optional<std::size_t> next_start;
};
Result<Page<Organisation>> read_projects(std::string_view body);
Result<Page<Repository>> read_repositories(std::string_view body);
// Returns names of branches or tags.
Result<Page<std::string>> read_refs(std::string_view body);
Result<Page<Webhook>> read_webhooks(std::string_view body);
Result<Repository> read_repository(std::string_view body);
// Returns the name of a branch: "displayId".
Result<std::string> read_ref(std::string_view body);
Result<PullRequest> read_pull_request(std::string_view body);
Result<Webhook> read_webhook(std::string_view body);

}  // namespace gitops::app_proxy::bitbucket_server
