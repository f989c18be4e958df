#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/providers/git_types.hpp"

// Requests and responses of Bitbucket Cloud's REST API 2.0
// (developer.atlassian.com/cloud/bitbucket/rest). Pure.
namespace gitops::app_proxy::bitbucket {

std::string repository_path(const RepositoryName& name, std::string_view rest = {});
// Query for a search by a part of a name: name~"…".
std::string name_filter(std::string_view text);
std::string new_repository_body(const NewRepository& repository);
std::string new_pull_request_body(const NewPullRequest& pull_request);
// Body of a commit status. The host requires a URL: `fallback_url` is used when the status has
// none.
std::string commit_status_body(const CommitStatus& status, std::string_view fallback_url);
std::string new_webhook_body(const NewWebhook& webhook);

Result<Profile> read_profile(std::string_view body, std::string_view host);
Result<std::string> read_primary_mail(std::string_view body);
// Items of a page of a list, and whether there are more.
template <class T>
struct Page {
  std::vector<T> items;
  std::size_t size = 0;   // items in the response, parsed or not
  std::size_t total = 0;  // on all pages; 0: the host does not report it
  bool has_next = false;
};
Result<Page<std::string>> read_workspaces(std::string_view body);
Result<Page<Repository>> read_repositories(std::string_view body);
Result<Page<std::string>> read_names(std::string_view body);
Result<Page<Webhook>> read_webhooks(std::string_view body);
Result<Repository> read_repository(std::string_view body);
// Returns the permission for this repository in a list; none when there is none. An entry that does
// not name its repository counts as found by the query.
Result<Permissions> read_permissions(std::string_view body, std::string_view full_name);
// Returns the commit from GET /refs/branches/{name}.
Result<std::string> read_branch_commit(std::string_view body);
// Checks for the list that GET /src/{commit}/{path} returns for a folder, in place of a file.
bool is_folder(std::string_view body);
Result<PullRequest> read_pull_request(std::string_view body);
Result<Webhook> read_webhook(std::string_view body);
// Returns the scopes that X-OAuth-Scopes lacks for work with repositories. Accepts scopes of app
// passwords and of API tokens ("write:repository:bitbucket").
std::vector<std::string> missing_scopes(std::string_view scopes);

}  // namespace gitops::app_proxy::bitbucket
