#include "app-proxy/providers/github_api.hpp"

#include <algorithm>

#include "app-proxy/errors/client_codes.hpp"
#include "app-proxy/providers/host_json.hpp"
#include "common/core/encoding.hpp"
#include "common/core/text.hpp"

namespace gitops::app_proxy::github {
namespace {

using Expect = HostJson::Expect;
constexpr std::size_t kMaxFile = 5UL * 1024 * 1024;
// Results that a search shows, however many it has found (docs.github.com/rest/search).
constexpr std::int64_t kMaxFound = 1'000;

std::unexpected<Error> lacks(std::string_view member) {
  return fail(ErrorCode::invalid_data, "no " + std::string(member));
}

std::optional<Permissions> permissions_of(JsonView json) {
  if (!json.is_object()) return std::nullopt;
  const bool admin = json["admin"].is_true();
  const bool write = admin || json["maintain"].is_true() || json["push"].is_true();
  return Permissions{.read = write || json["pull"].is_true(), .write = write, .admin = admin};
}

Result<Repository> repository_of(JsonView json) {
  Repository out;
  out.id = host_id(json["id"]);
  out.full_name = host_text(json["full_name"]);
  if (out.id.empty()) return lacks("id");
  if (!parse_repository_name(out.full_name)) return lacks("full_name");
  out.owner_login = host_text(json["owner"]["login"]);
  out.owner_avatar_url = host_url(json["owner"]["avatar_url"]);
  if (json["owner"]["type"].text() == "Organization") out.organisation = out.owner_login;
  out.default_branch = host_text(json["default_branch"]);
  out.clone_url = host_url(json["clone_url"]);
  out.ssh_url = host_ssh_url(json["ssh_url"]);
  out.web_url = host_url(json["html_url"]);
  out.pushed_at = host_time(json["pushed_at"]);
  if (out.pushed_at.empty()) out.pushed_at = host_time(json["updated_at"]);
  out.open_issues = std::max<std::int64_t>(json["open_issues_count"].number(), 0);
  out.is_private = !json["private"].exists() || json["private"].is_true();
  out.permissions = permissions_of(json["permissions"]);
  return out;
}

Result<std::vector<Repository>> repositories_of(const JsonItems& items) {
  std::vector<Repository> out;
  for (const auto item : items) {
    auto repository = repository_of(item);
    // An unreadable one is skipped.
    if (repository) out.push_back(std::move(*repository));
  }
  return out;
}

Result<Webhook> webhook_of(JsonView json) {
  Webhook out{.id = host_id(json["id"]),
              .url = host_url(json["config"]["url"]),
              .is_active = json["active"].is_true()};
  if (out.id.empty()) return lacks("id");
  return out;
}

}  // namespace

std::string repository_path(const RepositoryName& name, std::string_view rest) {
  return "/repos/" + encode_path(name.full()) + std::string(rest);
}

std::string new_repository_body(const NewRepository& repository) {
  std::string out;
  ObjectWriter json(out);
  json.text("name", repository.name.name);
  json.raw("private", repository.is_private ? "true" : "false");
  json.raw("auto_init", repository.is_initialised ? "true" : "false");
  json.end();
  return out;
}

std::string new_pull_request_body(const NewPullRequest& pull_request) {
  std::string out;
  ObjectWriter json(out);
  json.text("title", pull_request.title);
  json.text("head", pull_request.head);
  json.text("base", pull_request.base);
  json.text("body", pull_request.description);
  json.end();
  return out;
}

std::string commit_status_body(const CommitStatus& status) {
  std::string out;
  ObjectWriter json(out);
  json.text("state", status.state == CommitStatus::State::pending   ? "pending"
                     : status.state == CommitStatus::State::success ? "success"
                                                                    : "failure");
  json.text("context", status.context);
  if (!status.description.empty()) json.text("description", status.description);
  if (!status.target_url.empty()) json.text("target_url", status.target_url);
  json.end();
  return out;
}

std::string new_webhook_body(const NewWebhook& webhook, std::optional<std::string_view> type) {
  std::string config;
  ObjectWriter fields(config);
  fields.text("url", webhook.url);
  fields.text("content_type", "json");
  if (!webhook.secret.empty()) fields.text("secret", webhook.secret.reveal());
  if (!type) fields.text("insecure_ssl", webhook.insecure_skip_verify ? "1" : "0");
  fields.end();
  std::string out;
  ObjectWriter json(out);
  json.text(type ? "type" : "name", type.value_or("web"));
  json.raw("active", "true");
  json.raw("events", R"(["push","pull_request"])");
  json.raw("config", config);
  json.end();
  return out;
}

std::string search_query(std::string_view text, const std::vector<std::string>& owners) {
  // Qualifiers ("user:") of the caller would widen the search, so only plain words pass.
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    out += plain ? c : ' ';
  }
  out = std::string(trimmed(out)) + " in:name fork:true";
  for (const auto& owner : owners) out += " user:" + owner;
  return out;
}

Result<Profile> read_profile(std::string_view body, std::string_view host) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  Profile out;
  out.id = host_id((*json)["id"]);
  out.login = host_text((*json)["login"]);
  if (out.id.empty() || out.login.empty()) return lacks("id and login");
  out.name = host_text((*json)["name"]);
  if (out.name.empty()) out.name = host_text((*json)["full_name"]);
  if (out.name.empty()) out.name = out.login;
  out.mail = host_mail((*json)["email"]);
  if (out.mail.empty()) out.mail = no_reply_mail(out.id, out.login, host);
  out.avatar_url = host_url((*json)["avatar_url"]);
  return out;
}

Result<std::string> read_primary_mail(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::array);
  if (!json) return std::unexpected(json.error());
  for (const auto item : json->items()) {
    const JsonView mail(item);
    if (mail["primary"].is_true() && mail["verified"].is_true()) return host_mail(mail["email"]);
  }
  return std::string();
}

Result<std::vector<Organisation>> read_organisations(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::array);
  if (!json) return std::unexpected(json.error());
  std::vector<Organisation> out;
  for (const auto item : json->items()) {
    auto name = host_text(item["login"]);
    if (name.empty()) name = host_text(item["username"]);
    if (!name.empty()) out.push_back({std::move(name)});
  }
  return out;
}

Result<Repository> read_repository(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  return repository_of(json->root());
}

Result<std::vector<Repository>> read_repositories(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::array);
  if (!json) return std::unexpected(json.error());
  return repositories_of(json->items());
}

Result<SearchResult> read_search(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  const auto items = (*json)["items"].is_array() ? (*json)["items"] : (*json)["data"];
  if (!items.is_array()) return lacks("items");
  if ((*json)["incomplete_results"].is_true()) {
    // A part does not tell what does not exist, and must not be kept as the host's answer.
    return std::unexpected(Error{.code = ErrorCode::unavailable,
                                 .message = "GitHub did not finish the search in its time; try "
                                            "again, or with more of the name",
                                 .subcode = git_errors::kUnreachable});
  }
  auto repositories = repositories_of(items.items());
  if (!repositories) return std::unexpected(repositories.error());
  return SearchResult{.repositories = std::move(*repositories),
                      .total = static_cast<std::size_t>(
                          std::clamp<std::int64_t>((*json)["total_count"].number(), 0, kMaxFound))};
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
  const auto json = HostJson::parse(body, HostJson::Expect::object);
  if (!json) {
    // The body for a folder is an array.
    return fail(ErrorCode::invalid_argument, "this is no file");
  }
  if ((*json)["type"].text() != "file") {
    return fail(ErrorCode::invalid_argument, "this is no file");
  }
  if ((*json)["encoding"].text() != "base64") {
    return fail(ErrorCode::too_large, "the file is too large to be read");
  }
  auto content = base64_decode((*json)["content"].text());
  if (!content) return lacks("base64");
  if (content->size() > kMaxFile) return fail(ErrorCode::too_large, "the file is over 5 MiB");
  return FileContent{.path = std::string(path),
                     .content = std::move(*content),
                     .revision = host_text((*json)["sha"])};
}

Result<PullRequest> read_pull_request(std::string_view body, const RepositoryName&) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  PullRequest out;
  out.id = (*json)["number"].number();
  if (out.id <= 0) return lacks("number");
  out.url = host_url((*json)["html_url"]);
  out.title = host_text((*json)["title"]);
  out.description = host_text((*json)["body"]);
  out.author = host_text((*json)["user"]["login"]);
  out.avatar_url = host_url((*json)["user"]["avatar_url"]);
  out.base_branch = host_text((*json)["base"]["ref"]);
  out.head_branch = host_text((*json)["head"]["ref"]);
  out.created_at = host_time((*json)["created_at"]);
  out.is_open = (*json)["state"].text() == "open";
  out.is_merged = (*json)["merged"].is_true();
  // Before the merge, GitHub reports the commit of a trial merge here.
  if (out.is_merged) out.merge_commit_sha = host_text((*json)["merge_commit_sha"]);
  return out;
}

Result<Webhook> read_webhook(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  return webhook_of(json->root());
}

Result<std::vector<Webhook>> read_webhooks(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::array);
  if (!json) return std::unexpected(json.error());
  std::vector<Webhook> out;
  for (const auto item : json->items()) {
    if (auto webhook = webhook_of(item)) out.push_back(std::move(*webhook));
  }
  return out;
}

std::vector<std::string> missing_scopes(std::string_view scopes, TokenUse use) {
  const auto has = [scopes](std::string_view wanted) {
    for (std::size_t begin = 0; begin <= scopes.size();) {
      const auto end = std::min(scopes.find(',', begin), scopes.size());
      if (trimmed(scopes.substr(begin, end - begin)) == wanted) return true;
      begin = end + 1;
    }
    return false;
  };
  std::vector<std::string> out;
  if (!has("repo")) out.emplace_back("repo");
  if (use == TokenUse::runtime && !has("admin:repo_hook")) out.emplace_back("admin:repo_hook");
  return out;
}

}  // namespace gitops::app_proxy::github
