#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/providers/git_types.hpp"

// Requests and responses of GitLab's REST API version 4 (docs.gitlab.com/api/rest). Pure.
namespace gitops::app_proxy::gitlab {

std::string project_path(const RepositoryName& name, std::string_view rest = {});
// Body for a new project. `namespace_id` is that of the owning group; empty for the user's own
// namespace.
std::string new_project_body(const NewRepository& repository, std::string_view namespace_id);
std::string new_merge_request_body(const NewPullRequest& pull_request);
std::string commit_status_body(const CommitStatus& status);
std::string new_hook_body(const NewWebhook& webhook);

Result<Profile> read_user(std::string_view body, std::string_view host);
// Checks whether a token is a project's, which sees only that project.
Result<bool> is_project_bot(std::string_view body);
// Returns the id of a namespace.
Result<std::string> read_namespace(std::string_view body);
Result<std::vector<Organisation>> read_groups(std::string_view body);
Result<Repository> read_project(std::string_view body);
Result<std::vector<Repository>> read_projects(std::string_view body);
Result<std::vector<std::string>> read_names(std::string_view body);
Result<FileContent> read_file(std::string_view body, std::string_view path);
Result<PullRequest> read_merge_request(std::string_view body);
Result<Webhook> read_hook(std::string_view body);
Result<std::vector<Webhook>> read_hooks(std::string_view body);
// Returns the scopes that the token lacks for `use`, from GET /personal_access_tokens/self.
Result<std::vector<std::string>> read_missing_scopes(std::string_view body, TokenUse use);

}  // namespace gitops::app_proxy::gitlab
