#include "app-proxy/providers/gitlab_api.hpp"

#include <algorithm>

#include "app-proxy/providers/host_json.hpp"
#include "common/core/encoding.hpp"

namespace gitops::app_proxy::gitlab {
namespace {

using Expect = HostJson::Expect;
constexpr std::size_t kMaxFile = 5UL * 1024 * 1024;
// Access levels: docs.gitlab.com/api/access_requests.
constexpr std::int64_t kDeveloper = 30;
constexpr std::int64_t kMaintainer = 40;

std::unexpected<Error> lacks(std::string_view member) {
  return fail(ErrorCode::invalid_data, "no " + std::string(member));
}

Result<Repository> project_of(JsonView json) {
  Repository out;
  out.id = host_id(json["id"]);
  out.full_name = host_text(json["path_with_namespace"]);
  if (out.id.empty()) return lacks("id");
  if (!parse_repository_name(out.full_name)) return lacks("path_with_namespace");
  out.owner_login = host_text(json["namespace"]["full_path"]);
  out.owner_avatar_url = host_url(json["namespace"]["avatar_url"]);
  if (json["namespace"]["kind"].text() == "group") out.organisation = out.owner_login;
  out.default_branch = host_text(json["default_branch"]);
  out.clone_url = host_url(json["http_url_to_repo"]);
  out.ssh_url = host_ssh_url(json["ssh_url_to_repo"]);
  out.web_url = host_url(json["web_url"]);
  out.pushed_at = host_time(json["last_activity_at"]);
  out.open_issues = std::max<std::int64_t>(json["open_issues_count"].number(), 0);
  out.is_private = json["visibility"].text() != "public";
  if (json["permissions"].is_object()) {
    const auto level = std::max(json["permissions"]["project_access"]["access_level"].number(),
                                json["permissions"]["group_access"]["access_level"].number());
    out.permissions =
        Permissions{.read = true, .write = level >= kDeveloper, .admin = level >= kMaintainer};
  }
  return out;
}

Result<Webhook> hook_of(JsonView json) {
  Webhook out{.id = host_id(json["id"]),
              .url = host_url(json["url"]),
              .is_active = json["alert_status"].text() != "disabled"};
  if (out.id.empty()) return lacks("id");
  return out;
}

}  // namespace

std::string project_path(const RepositoryName& name, std::string_view rest) {
  // The whole path of the project is one segment.
  return "/projects/" + percent_encode(name.full()) + std::string(rest);
}

std::string new_project_body(const NewRepository& repository, std::string_view namespace_id) {
  std::string out;
  ObjectWriter json(out);
  json.text("name", repository.name.name);
  json.text("path", repository.name.name);
  if (!namespace_id.empty()) json.text("namespace_id", namespace_id);
  json.text("visibility", repository.is_private ? "private" : "public");
  json.raw("initialize_with_readme", repository.is_initialised ? "true" : "false");
  json.end();
  return out;
}

std::string new_merge_request_body(const NewPullRequest& pull_request) {
  std::string out;
  ObjectWriter json(out);
  json.text("title", pull_request.title);
  json.text("description", pull_request.description);
  json.text("source_branch", pull_request.head);
  json.text("target_branch", pull_request.base);
  json.end();
  return out;
}

std::string commit_status_body(const CommitStatus& status) {
  std::string out;
  ObjectWriter json(out);
  json.text("state", status.state == CommitStatus::State::pending   ? "pending"
                     : status.state == CommitStatus::State::success ? "success"
                                                                    : "failed");
  json.text("name", status.context);
  if (!status.description.empty()) json.text("description", status.description);
  if (!status.target_url.empty()) json.text("target_url", status.target_url);
  json.end();
  return out;
}

std::string new_hook_body(const NewWebhook& webhook) {
  std::string out;
  ObjectWriter json(out);
  json.text("url", webhook.url);
  if (!webhook.secret.empty()) json.text("token", webhook.secret.reveal());
  json.raw("push_events", "true");
  json.raw("merge_requests_events", "true");
  json.raw("enable_ssl_verification", webhook.insecure_skip_verify ? "false" : "true");
  json.end();
  return out;
}

Result<Profile> read_user(std::string_view body, std::string_view host) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  Profile out;
  out.id = host_id((*json)["id"]);
  out.login = host_text((*json)["username"]);
  if (out.id.empty() || out.login.empty()) return lacks("id and username");
  out.name = host_text((*json)["name"]);
  if (out.name.empty()) out.name = out.login;
  // The address that the user chose for commits has precedence.
  for (const auto* member : {"commit_email", "email", "public_email"}) {
    if (out.mail.empty()) out.mail = host_mail((*json)[member]);
  }
  if (out.mail.empty()) out.mail = no_reply_mail(out.id, out.login, host);
  out.avatar_url = host_url((*json)["avatar_url"]);
  return out;
}

Result<bool> is_project_bot(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  return (*json)["bot"].is_true() && (*json)["username"].text().starts_with("project");
}

Result<std::string> read_namespace(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  auto id = host_id((*json)["id"]);
  if (id.empty()) return lacks("id");
  return id;
}

Result<std::vector<Organisation>> read_groups(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::array);
  if (!json) return std::unexpected(json.error());
  std::vector<Organisation> out;
  for (const auto item : json->items()) {
    if (auto name = host_text(item["full_path"]); !name.empty()) {
      out.push_back({std::move(name)});
    }
  }
  return out;
}

Result<Repository> read_project(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  return project_of(json->root());
}

Result<std::vector<Repository>> read_projects(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::array);
  if (!json) return std::unexpected(json.error());
  std::vector<Repository> out;
  for (const auto item : json->items()) {
    if (auto project = project_of(item)) out.push_back(std::move(*project));
  }
  return out;
}

Result<std::vector<std::string>> read_names(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::array);
  if (!json) return std::unexpected(json.error());
  std::vector<std::string> out;
  for (const auto item : json->items()) {
    if (auto name = host_text(item["name"]); check_ref(name)) {
      out.push_back(std::move(name));
    }
  }
  return out;
}

Result<FileContent> read_file(std::string_view body, std::string_view path) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  if ((*json)["encoding"].text() != "base64") return lacks("base64");
  auto content = base64_decode((*json)["content"].text());
  if (!content) return lacks("base64");
  if (content->size() > kMaxFile) return fail(ErrorCode::too_large, "the file is over 5 MiB");
  return FileContent{.path = std::string(path),
                     .content = std::move(*content),
                     .revision = host_text((*json)["blob_id"])};
}

Result<PullRequest> read_merge_request(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  PullRequest out;
  out.id = (*json)["iid"].number();
  if (out.id <= 0) return lacks("iid");
  out.url = host_url((*json)["web_url"]);
  out.title = host_text((*json)["title"]);
  out.description = host_text((*json)["description"]);
  out.author = host_text((*json)["author"]["username"]);
  out.avatar_url = host_url((*json)["author"]["avatar_url"]);
  out.base_branch = host_text((*json)["target_branch"]);
  out.head_branch = host_text((*json)["source_branch"]);
  out.created_at = host_time((*json)["created_at"]);
  const auto state = (*json)["state"].text();
  out.is_open = state == "opened" || state == "locked";
  out.is_merged = state == "merged";
  if (out.is_merged) {
    // A fast-forward has no merge commit.
    for (const auto* member : {"merge_commit_sha", "squash_commit_sha", "sha"}) {
      if (out.merge_commit_sha.empty()) out.merge_commit_sha = host_text((*json)[member]);
    }
  }
  return out;
}

Result<Webhook> read_hook(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  return hook_of(json->root());
}

Result<std::vector<Webhook>> read_hooks(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::array);
  if (!json) return std::unexpected(json.error());
  std::vector<Webhook> out;
  for (const auto item : json->items()) {
    if (auto hook = hook_of(item)) out.push_back(std::move(*hook));
  }
  return out;
}

Result<std::vector<std::string>> read_missing_scopes(std::string_view body, TokenUse use) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  if (!(*json)["scopes"].is_array()) return lacks("scopes");
  bool api = false;
  bool read_api = false;
  bool write_repository = false;
  for (const auto item : (*json)["scopes"].items()) {
    const auto scope = item.text();
    api = api || scope == "api";
    read_api = read_api || scope == "read_api";
    write_repository = write_repository || scope == "write_repository";
  }
  std::vector<std::string> out;
  if (api) return out;
  if (use == TokenUse::runtime) {
    out.emplace_back("api");
    return out;
  }
  if (!read_api) out.emplace_back("read_api");
  if (!write_repository) out.emplace_back("write_repository");
  return out;
}

}  // namespace gitops::app_proxy::gitlab
