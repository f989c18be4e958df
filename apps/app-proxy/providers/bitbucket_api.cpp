#include "app-proxy/providers/bitbucket_api.hpp"

#include <algorithm>
#include <functional>

#include "app-proxy/providers/host_json.hpp"
#include "common/core/encoding.hpp"
#include "common/core/text.hpp"
#include "common/http/message.hpp"

namespace gitops::app_proxy::bitbucket {
namespace {

using Expect = HostJson::Expect;

std::unexpected<Error> lacks(std::string_view member) {
  return fail(ErrorCode::invalid_data, "no " + std::string(member));
}

// Returns the login: accounts have a nickname; old responses and workspaces have a username.
std::string login_of(JsonView account) {
  for (const auto* member : {"username", "nickname", "display_name"}) {
    if (auto login = host_text(account[member]); !login.empty()) return login;
  }
  return {};
}

Result<Repository> repository_of(JsonView json) {
  Repository out;
  out.id = host_text(json["uuid"]);
  out.full_name = host_text(json["full_name"]);
  if (out.id.empty()) return lacks("uuid");
  if (!parse_repository_name(out.full_name)) return lacks("full_name");
  out.owner_login = login_of(json["owner"]);
  out.owner_avatar_url = host_url(json["owner"]["links"]["avatar"]["href"]);
  if (const auto workspace = host_text(json["workspace"]["slug"]); !workspace.empty()) {
    out.organisation = workspace;
  }
  if (const auto project = host_text(json["project"]["key"]); !project.empty()) {
    out.project = project;
  }
  out.default_branch = host_text(json["mainbranch"]["name"]);
  for (const auto link : json["links"]["clone"].items()) {
    if (link["name"].text() == "https") out.clone_url = host_url(link["href"]);
    if (link["name"].text() == "ssh") out.ssh_url = host_ssh_url(link["href"]);
  }
  out.web_url = host_url(json["links"]["html"]["href"]);
  out.pushed_at = host_time(json["updated_on"]);
  out.is_private = !json["is_private"].exists() || json["is_private"].is_true();
  return out;
}

Result<Webhook> webhook_of(JsonView json) {
  Webhook out{.id = host_text(json["uuid"]),
              .url = host_url(json["url"]),
              .is_active = json["active"].is_true()};
  if (out.id.empty()) return lacks("uuid");
  return out;
}

// Reads a list. `read` returns an item or an error; unreadable items are skipped.
template <class T, class Read>
Result<Page<T>> read_page(std::string_view body, Read read) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  if (!(*json)["values"].is_array()) return lacks("values");
  Page<T> out;
  for (const auto item : (*json)["values"].items()) {
    ++out.size;
    Result<T> value = read(item);
    if (value) out.items.push_back(std::move(*value));
  }
  out.total = static_cast<std::size_t>(std::max<std::int64_t>((*json)["size"].number(), 0));
  out.has_next = !(*json)["next"].text().empty();
  return out;
}

}  // namespace

std::string repository_path(const RepositoryName& name, std::string_view rest) {
  return "/repositories/" + encode_path(name.full()) + std::string(rest);
}

std::string name_filter(std::string_view text) {
  std::string out = "name~\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string new_repository_body(const NewRepository& repository) {
  std::string out;
  ObjectWriter json(out);
  json.text("scm", "git");
  json.raw("is_private", repository.is_private ? "true" : "false");
  json.end();
  return out;
}

std::string new_pull_request_body(const NewPullRequest& pull_request) {
  const auto branch = [](std::string_view name) {
    return R"({"branch":{"name":)" + json_string(name) + "}}";
  };
  std::string out;
  ObjectWriter json(out);
  json.text("title", pull_request.title);
  json.text("description", pull_request.description);
  json.raw("source", branch(pull_request.head));
  json.raw("destination", branch(pull_request.base));
  json.end();
  return out;
}

std::string commit_status_body(const CommitStatus& status, std::string_view fallback_url) {
  std::string out;
  ObjectWriter json(out);
  json.text("key", status.context);
  json.text("state", status.state == CommitStatus::State::pending   ? "INPROGRESS"
                     : status.state == CommitStatus::State::success ? "SUCCESSFUL"
                                                                    : "FAILED");
  json.text("name", status.context);
  json.text("url", status.target_url.empty() ? fallback_url : std::string_view(status.target_url));
  if (!status.description.empty()) json.text("description", status.description);
  json.end();
  return out;
}

std::string new_webhook_body(const NewWebhook& webhook) {
  std::string out;
  ObjectWriter json(out);
  json.text("description", "GitOps runtime");
  json.text("url", webhook.url);
  json.raw("active", "true");
  if (!webhook.secret.empty()) json.text("secret", webhook.secret.reveal());
  json.raw("skip_cert_verification", webhook.insecure_skip_verify ? "true" : "false");
  json.raw("events",
           R"(["repo:push","pullrequest:created","pullrequest:updated","pullrequest:fulfilled",)"
           R"("pullrequest:rejected"])");
  json.end();
  return out;
}

Result<Profile> read_profile(std::string_view body, std::string_view host) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  Profile out;
  out.id = host_text((*json)["uuid"]);
  out.login = login_of(json->root());
  if (out.id.empty() || out.login.empty()) return lacks("uuid and username");
  out.name = host_text((*json)["display_name"]);
  if (out.name.empty()) out.name = out.login;
  out.mail = no_reply_mail("", out.login, host);
  out.avatar_url = host_url((*json)["links"]["avatar"]["href"]);
  return out;
}

Result<std::string> read_primary_mail(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  for (const auto mail : (*json)["values"].items()) {
    if (mail["is_primary"].is_true() && mail["is_confirmed"].is_true()) {
      return host_mail(mail["email"]);
    }
  }
  return std::string();
}

Result<Page<std::string>> read_workspaces(std::string_view body) {
  return read_page<std::string>(body, [](JsonView json) -> Result<std::string> {
    // /user/workspaces: {"workspace":{"slug"}}; /workspaces: {"slug"}.
    auto slug = host_text(json["workspace"]["slug"]);
    if (slug.empty()) slug = host_text(json["slug"]);
    if (!parse_repository_name(slug + "/x")) return lacks("slug");
    return slug;
  });
}

Result<Page<Repository>> read_repositories(std::string_view body) {
  return read_page<Repository>(body, repository_of);
}

Result<Page<std::string>> read_names(std::string_view body) {
  return read_page<std::string>(body, [](JsonView json) -> Result<std::string> {
    auto name = host_text(json["name"]);
    if (!check_ref(name)) return lacks("name");
    return name;
  });
}

Result<Page<Webhook>> read_webhooks(std::string_view body) {
  return read_page<Webhook>(body, webhook_of);
}

Result<Repository> read_repository(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  return repository_of(json->root());
}

Result<Permissions> read_permissions(std::string_view body, std::string_view full_name) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  if (!(*json)["values"].is_array()) return lacks("values");
  for (const auto item : (*json)["values"].items()) {
    const auto of = item["repository"]["full_name"].text();
    if (!of.empty() && !http::equal_ignoring_case(of, full_name)) continue;
    const auto permission = item["permission"].text();
    const bool admin = permission == "admin";
    const bool write = admin || permission == "write";
    return Permissions{.read = write || permission == "read", .write = write, .admin = admin};
  }
  return Permissions{};
}

Result<std::string> read_branch_commit(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  auto hash = host_text((*json)["target"]["hash"]);
  if (!check_sha(hash)) return lacks("target.hash");
  return hash;
}

bool is_folder(std::string_view body) {
  // Most files need no parsing.
  if (!body.starts_with('{') || !body.contains("\"commit_")) return false;
  const auto json = HostJson::parse(body, Expect::object);
  if (!json || !(*json)["values"].is_array() || !(*json)["pagelen"].is_integer()) return false;
  for (const auto item : (*json)["values"].items()) {
    if (!item["type"].text().starts_with("commit_")) return false;
  }
  return true;
}

Result<PullRequest> read_pull_request(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  PullRequest out;
  out.id = (*json)["id"].number();
  if (out.id <= 0) return lacks("id");
  out.url = host_url((*json)["links"]["html"]["href"]);
  out.title = host_text((*json)["title"]);
  out.description = host_text((*json)["description"]);
  out.author = login_of((*json)["author"]);
  out.avatar_url = host_url((*json)["author"]["links"]["avatar"]["href"]);
  out.base_branch = host_text((*json)["destination"]["branch"]["name"]);
  out.head_branch = host_text((*json)["source"]["branch"]["name"]);
  out.created_at = host_time((*json)["created_on"]);
  const auto state = (*json)["state"].text();
  out.is_open = state == "OPEN";
  out.is_merged = state == "MERGED";
  if (out.is_merged) out.merge_commit_sha = host_text((*json)["merge_commit"]["hash"]);
  return out;
}

Result<Webhook> read_webhook(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  return webhook_of(json->root());
}

std::vector<std::string> missing_scopes(std::string_view scopes) {
  const auto has = [scopes](std::initializer_list<std::string_view> any) {
    for (std::size_t begin = 0; begin <= scopes.size();) {
      const auto end = std::min(scopes.find(',', begin), scopes.size());
      const auto scope = trimmed(scopes.substr(begin, end - begin));
      if (std::ranges::find(any, scope) != any.end()) return true;
      begin = end + 1;
    }
    return false;
  };
  std::vector<std::string> out;
  if (!has({"repository:admin", "admin:repository:bitbucket"})) {
    out.emplace_back("repository:admin");
  }
  if (!has({"repository:write", "repository:admin", "write:repository:bitbucket",
            "admin:repository:bitbucket"})) {
    out.emplace_back("repository:write");
  }
  if (!has({"account", "account:write", "read:user:bitbucket", "read:account"})) {
    out.emplace_back("account");
  }
  if (!has({"team", "team:write", "account", "account:write", "read:workspace:bitbucket"})) {
    out.emplace_back("team");
  }
  if (!has({"webhook", "write:webhook:bitbucket"})) out.emplace_back("webhook");
  return out;
}

}  // namespace gitops::app_proxy::bitbucket
