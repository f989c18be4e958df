#include "app-proxy/providers/bitbucket_server_api.hpp"

#include <algorithm>

#include "app-proxy/providers/host_json.hpp"
#include "common/core/encoding.hpp"

namespace gitops::app_proxy::bitbucket_server {
namespace {

using Expect = HostJson::Expect;

std::unexpected<Error> lacks(std::string_view member) {
  return fail(ErrorCode::invalid_data, "no " + std::string(member));
}

// Returns the first link of a kind: {"self":[{"href"}]}.
JsonView first_link(JsonView links, std::string_view kind) {
  for (const auto item : links[kind].items()) return item["href"];
  return {};
}

Result<Repository> repository_of(JsonView json) {
  Repository out;
  out.id = host_id(json["id"]);
  const auto key = host_text(json["project"]["key"]);
  out.full_name = key + "/" + host_text(json["slug"]);
  if (out.id.empty()) return lacks("id");
  if (!parse_repository_name(out.full_name)) return lacks("project and slug");
  out.owner_login = key;
  out.project = key;
  if (json["project"]["type"].text() != "PERSONAL") out.organisation = key;
  for (const auto link : json["links"]["clone"].items()) {
    if (link["name"].text().starts_with("http")) out.clone_url = host_url(link["href"]);
    if (link["name"].text() == "ssh") out.ssh_url = host_ssh_url(link["href"]);
  }
  out.web_url = host_url(first_link(json["links"], "self"));
  out.default_branch = host_text(json["defaultBranch"]);
  out.is_private = !json["public"].is_true();
  return out;
}

Result<Webhook> webhook_of(JsonView json) {
  Webhook out{.id = host_id(json["id"]),
              .url = host_url(json["url"]),
              .is_active = json["active"].is_true()};
  if (out.id.empty()) return lacks("id");
  return out;
}

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
  const auto next = (*json)["nextPageStart"].number();
  if (!(*json)["isLastPage"].is_true() && next > 0) {
    out.next_start = static_cast<std::size_t>(next);
  }
  return out;
}

Result<std::string> ref_of(JsonView json) {
  auto name = host_text(json["displayId"]);
  if (!check_ref(name)) return lacks("displayId");
  return name;
}

}  // namespace

std::string repository_path(const RepositoryName& name, std::string_view rest) {
  return "/projects/" + percent_encode(name.owner) + "/repos/" + percent_encode(name.name) +
         std::string(rest);
}

std::string new_repository_body(const NewRepository& repository) {
  std::string out;
  ObjectWriter json(out);
  json.text("name", repository.name.name);
  json.text("scmId", "git");
  json.raw("public", repository.is_private ? "false" : "true");
  json.end();
  return out;
}

std::string new_pull_request_body(const RepositoryName& name, const NewPullRequest& pull_request) {
  const auto ref = [&name](std::string_view branch) {
    return R"({"id":)" + json_string("refs/heads/" + std::string(branch)) +
           R"(,"repository":{"slug":)" + json_string(name.name) + R"(,"project":{"key":)" +
           json_string(name.owner) + "}}}";
  };
  std::string out;
  ObjectWriter json(out);
  json.text("title", pull_request.title);
  json.text("description", pull_request.description);
  json.raw("fromRef", ref(pull_request.head));
  json.raw("toRef", ref(pull_request.base));
  json.end();
  return out;
}

std::string commit_status_body(const CommitStatus& status, std::string_view fallback_url) {
  std::string out;
  ObjectWriter json(out);
  json.text("state", status.state == CommitStatus::State::pending   ? "INPROGRESS"
                     : status.state == CommitStatus::State::success ? "SUCCESSFUL"
                                                                    : "FAILED");
  json.text("key", status.context);
  json.text("name", status.context);
  json.text("url", status.target_url.empty() ? fallback_url : std::string_view(status.target_url));
  if (!status.description.empty()) json.text("description", status.description);
  json.end();
  return out;
}

std::string new_webhook_body(const NewWebhook& webhook) {
  std::string configuration;
  ObjectWriter fields(configuration);
  if (!webhook.secret.empty()) fields.text("secret", webhook.secret.reveal());
  fields.end();
  std::string out;
  ObjectWriter json(out);
  json.text("name", "GitOps runtime");
  json.text("url", webhook.url);
  json.raw("active", "true");
  json.raw("events",
           R"(["repo:refs_changed","pr:opened","pr:from_ref_updated","pr:merged","pr:declined"])");
  json.raw("configuration", configuration);
  json.raw("sslVerificationRequired", webhook.insecure_skip_verify ? "false" : "true");
  json.end();
  return out;
}

Result<Profile> read_user(std::string_view body, std::string_view host) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  Profile out;
  out.id = host_id((*json)["id"]);
  out.login = host_text((*json)["name"]);
  if (out.id.empty() || out.login.empty()) return lacks("id and name");
  out.name = host_text((*json)["displayName"]);
  if (out.name.empty()) out.name = out.login;
  out.mail = host_mail((*json)["emailAddress"]);
  if (out.mail.empty()) out.mail = no_reply_mail("", out.login, host);
  return out;
}

Result<Page<Organisation>> read_projects(std::string_view body) {
  return read_page<Organisation>(body, [](JsonView json) -> Result<Organisation> {
    Organisation out{host_text(json["key"])};
    if (out.name.empty()) return lacks("key");
    return out;
  });
}

Result<Page<Repository>> read_repositories(std::string_view body) {
  return read_page<Repository>(body, repository_of);
}

Result<Page<std::string>> read_refs(std::string_view body) {
  return read_page<std::string>(body, ref_of);
}

Result<Page<Webhook>> read_webhooks(std::string_view body) {
  return read_page<Webhook>(body, webhook_of);
}

Result<Repository> read_repository(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  return repository_of(json->root());
}

Result<std::string> read_ref(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  return ref_of(json->root());
}

Result<PullRequest> read_pull_request(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  PullRequest out;
  out.id = (*json)["id"].number();
  if (out.id <= 0) return lacks("id");
  out.url = host_url(first_link((*json)["links"], "self"));
  out.title = host_text((*json)["title"]);
  out.description = host_text((*json)["description"]);
  out.author = host_text((*json)["author"]["user"]["name"]);
  out.base_branch = host_text((*json)["toRef"]["displayId"]);
  out.head_branch = host_text((*json)["fromRef"]["displayId"]);
  out.created_at = host_time((*json)["createdDate"]);
  const auto state = (*json)["state"].text();
  out.is_open = state == "OPEN";
  out.is_merged = state == "MERGED";
  if (out.is_merged) {
    out.merge_commit_sha = host_text((*json)["properties"]["mergeCommit"]["id"]);
  }
  return out;
}

Result<Webhook> read_webhook(std::string_view body) {
  const auto json = HostJson::parse(body, Expect::object);
  if (!json) return std::unexpected(json.error());
  return webhook_of(json->root());
}

}  // namespace gitops::app_proxy::bitbucket_server
