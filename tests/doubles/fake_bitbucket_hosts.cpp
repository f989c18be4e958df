#include "common/core/encoding.hpp"
#include "doubles/fake_git_hosts.hpp"

// Bitbucket Cloud (developer.atlassian.com/cloud/bitbucket/rest) and Bitbucket Server
// (developer.atlassian.com/server/bitbucket/rest).
namespace gitops::test {

using Json = nlohmann::json;

namespace {

std::string uuid_of(std::int64_t id) {
  return "{00000000-0000-0000-0000-" + std::to_string(100'000'000'000 + id) + "}";
}

// The rest of a path from a segment on.
std::string rest_of(const std::vector<std::string>& path, std::size_t from) {
  std::string out;
  for (std::size_t i = from; i < path.size(); ++i) out += (i > from ? "/" : "") + path[i];
  return out;
}

http::Response raw(const std::string& content) {
  return {
      .status = 200, .headers = {{"Content-Type", "application/octet-stream"}}, .body = content};
}

}  // namespace

Json FakeGitHost::bitbucket_repository(const Repository& repository) const {
  const auto full_name = repository.owner + "/" + repository.name;
  const auto link = [](std::string name, std::string href) {
    return Json{{"name", std::move(name)}, {"href", std::move(href)}};
  };
  return {
      {"uuid", uuid_of(repository.id)},
      {"full_name", full_name},
      {"is_private", repository.is_private},
      {"owner",
       {{"username", repository.owner},
        {"links", {{"avatar", {{"href", "https://bitbucket.example.test/a.png"}}}}}}},
      {"workspace", {{"slug", repository.owner}}},
      {"project", {{"key", "PROJ"}}},
      {"mainbranch", {{"name", repository.default_branch}}},
      {"updated_on", "2026-03-04T09:15:27.412000+00:00"},
      {"links",
       {{"html", {{"href", "https://bitbucket.example.test/" + full_name}}},
        {"clone",
         Json::array({link("https", "https://dana@bitbucket.example.test/" + full_name + ".git"),
                      link("ssh", "git@bitbucket.example.test:" + full_name + ".git")})}}}};
}

http::Response FakeGitHost::answer_bitbucket(const ParsedRequest& asked) {
  const auto& path = asked.path;
  if (path.empty()) return failure(404);
  if (asked.is("GET", 1) && path[0] == "user") {
    auto response =
        json(200, {{"uuid", uuid_of(7)},
                   {"nickname", kLogin},
                   {"display_name", "Dana Example"},
                   {"links", {{"avatar", {{"href", "https://bitbucket.example.test/7.png"}}}}}});
    response.headers.add("X-OAuth-Scopes", asked.may_write
                                               ? "repository:admin, account, team, webhook"
                                               : "repository, account, team, webhook");
    return response;
  }
  if (asked.is("GET", 2) && path[0] == "user" && path[1] == "emails") {
    if (!mail_) return failure(403);
    return json(
        200, {{"values",
               Json::array({{{"email", *mail_}, {"is_primary", true}, {"is_confirmed", true}}})}});
  }
  if (asked.is("GET", 2) && path[0] == "user" && path[1] == "workspaces") {
    return bitbucket_page(asked, Json::array({{{"workspace", {{"slug", kLogin}}}},
                                              {{"workspace", {{"slug", kOrganisation}}}}}));
  }
  if (asked.is("GET", 5) && path[0] == "user" && path[3] == "permissions") {
    const auto q = asked.query.get("q");
    auto out = Json::array();
    for (const auto* repository : all()) {
      if (q == "repository.full_name=\"" + repository->owner + "/" + repository->name + "\"") {
        out.push_back({{"permission", asked.may_write ? "admin" : "read"}});
      }
    }
    return bitbucket_page(asked, out);
  }
  if (path[0] != "repositories" || path.size() < 2) return failure(404);
  if (asked.is("GET", 2)) {
    // name~"TEXT"
    auto part = asked.query.get("q");
    if (part.size() > 7) part = part.substr(6, part.size() - 7);
    auto out = Json::array();
    for (const auto* repository : all(part)) {
      if (repository->owner == path[1]) out.push_back(bitbucket_repository(*repository));
    }
    return bitbucket_page(asked, out);
  }
  auto* repository = find(path[1], path[2]);
  if (asked.is("POST", 3)) {
    if (!asked.may_write) return failure(403);
    if (repository) return failure(400);
    auto& made = add_repository(path[1], path[2]);
    made.is_private = asked.body.value("is_private", false);
    return json(200, bitbucket_repository(made));
  }
  if (!repository) return failure(404);
  if (asked.is("GET", 3)) return json(200, bitbucket_repository(*repository));
  const auto& what = path[3];
  if (asked.is("GET", 5) && what == "refs") {
    auto out = Json::array();
    for (const auto& name : path[4] == "branches" ? repository->branches : repository->tags) {
      out.push_back({{"name", name}});
    }
    return bitbucket_page(asked, out);
  }
  if (asked.method == "GET" && what == "refs" && path.size() > 5) {
    const auto name = rest_of(path, 5);
    const auto& names = path[4] == "branches" ? repository->branches : repository->tags;
    if (!names.contains(name)) return failure(404);
    return json(200, {{"name", name}, {"target", {{"hash", kCommit}}}});
  }
  if (asked.method == "GET" && what == "src" && path.size() > 5) {
    const auto file = rest_of(path, 5);
    const auto found = repository->files.find(file);
    const bool has_ref = path[4] == kCommit || repository->branches.contains(path[4]) ||
                         repository->tags.contains(path[4]);
    auto below = Json::array();
    for (const auto& [name, content] : repository->files) {
      if (name.starts_with(file + "/")) below.push_back({{"path", name}, {"type", "commit_file"}});
    }
    if (has_ref && !below.empty()) return bitbucket_page(asked, below);
    if (found == repository->files.end() || !has_ref) return failure(404);
    return raw(found->second);
  }
  const auto shown = [&](std::size_t number) {
    const auto& from = repository->pull_requests[number - 1];
    const bool is_merged = from.state == "merged";
    return Json{
        {"id", number},
        {"links",
         {{"html", {{"href", "https://bitbucket.example.test/pr/" + std::to_string(number)}}}}},
        {"title", from.title},
        {"description", from.description},
        {"author", {{"nickname", kLogin}}},
        {"destination", {{"branch", {{"name", from.base}}}}},
        {"source", {{"branch", {{"name", from.head}}}}},
        {"created_on", "2026-03-04T09:15:27.412000+00:00"},
        {"state", from.state == "open" ? "OPEN"
                  : is_merged          ? "MERGED"
                                       : "DECLINED"},
        {"merge_commit", is_merged ? Json{{"hash", kMergeCommit}} : Json()}};
  };
  if (asked.is("POST", 4) && what == "pullrequests") {
    if (!asked.may_write) return failure(403);
    const auto head = asked.body["source"]["branch"].value("name", "");
    if (!repository->branches.contains(head)) return failure(400);
    repository->pull_requests.push_back(
        {.title = asked.body.value("title", ""),
         .description = asked.body.value("description", ""),
         .head = head,
         .base = asked.body["destination"]["branch"].value("name", "")});
    return json(201, shown(repository->pull_requests.size()));
  }
  if (asked.is("GET", 5) && what == "pullrequests") {
    const auto number = std::stoul(path[4]);
    if (number < 1 || number > repository->pull_requests.size()) return failure(404);
    return json(200, shown(number));
  }
  if (asked.is("POST", 7) && what == "commit") {
    if (!asked.may_write) return failure(403);
    if (asked.body.value("url", "").empty()) return failure(400);
    repository->statuses[path[4]].push_back(asked.body);
    return json(201, asked.body);
  }
  const auto hook = [](const Hook& from) {
    return Json{{"uuid", uuid_of(from.id)}, {"url", from.url}, {"active", true}};
  };
  if (what == "hooks" && !asked.may_write) return failure(403);
  if (asked.is("GET", 4) && what == "hooks") {
    auto out = Json::array();
    for (const auto& from : repository->hooks) out.push_back(hook(from));
    return bitbucket_page(asked, out);
  }
  if (asked.is("POST", 4) && what == "hooks") {
    repository->hooks.push_back({.id = ++last_id_,
                                 .url = asked.body.value("url", ""),
                                 .secret = asked.body.value("secret", "")});
    return json(201, hook(repository->hooks.back()));
  }
  if (asked.is("DELETE", 5) && what == "hooks") {
    const auto erased = std::erase_if(
        repository->hooks, [&](const Hook& from) { return uuid_of(from.id) == path[4]; });
    return erased == 0 ? failure(404) : http::Response{.status = 204};
  }
  return failure(404);
}

Json FakeGitHost::bitbucket_server_repository(const Repository& repository) const {
  const auto base = "bitbucket.example.test/scm/" + repository.owner + "/" + repository.name;
  return {{"id", repository.id},
          {"slug", repository.name},
          {"name", repository.name},
          {"public", !repository.is_private},
          {"project",
           {{"key", repository.owner},
            {"type", repository.owner.starts_with('~') ? "PERSONAL" : "NORMAL"}}},
          {"links",
           {{"self", Json::array({{{"href", "https://" + base}}})},
            {"clone", Json::array({{{"name", "http"}, {"href", "https://" + base + ".git"}},
                                   {{"name", "ssh"}, {"href", "ssh://git@" + base + ".git"}}})}}}};
}

http::Response FakeGitHost::answer_bitbucket_server(const ParsedRequest& asked) {
  const auto& path = asked.path;
  if (path.empty()) return failure(404);
  if (asked.is("GET", 1) && path[0] == "application-properties") {
    auto response = json(200, {{"version", "8.9.0"}});
    response.headers.add("X-AUSERNAME", kLogin);
    return response;
  }
  if (asked.is("GET", 2) && path[0] == "users") {
    if (path[1] != kLogin) return failure(404);
    return json(200, {{"id", 7},
                      {"name", kLogin},
                      {"displayName", "Dana Example"},
                      {"emailAddress", mail_ ? Json(*mail_) : Json()}});
  }
  if (asked.is("POST", 3) && path[0] == "users") return failure(asked.may_write ? 400 : 401);
  if (asked.is("GET", 1) && path[0] == "projects") {
    return bitbucket_server_page(asked, Json::array({{{"key", organisation()}}}));
  }
  if (asked.is("GET", 1) && path[0] == "repos") {
    const auto permission = asked.query.get("permission");
    const auto key = asked.query.get("projectkey");
    auto out = Json::array();
    for (const auto* repository : all(asked.query.get("name"))) {
      if (permission != "REPO_READ" && !asked.may_write) continue;
      if (!key.empty() && repository->owner != key) continue;
      out.push_back(bitbucket_server_repository(*repository));
    }
    return bitbucket_server_page(asked, out);
  }
  // POST /rest/build-status/1.0/commits/{sha}
  if (asked.is("POST", 5) && path[1] == "build-status") {
    if (!asked.may_write) return failure(403);
    for (auto* repository : all()) repository->statuses[path[4]].push_back(asked.body);
    return {.status = 204};
  }
  if (path[0] != "projects" || path.size() < 3) return failure(404);
  if (asked.is("POST", 3)) {
    if (!asked.may_write) return failure(403);
    const auto name = asked.body.value("name", "");
    if (find(path[1], name)) return failure(409);
    auto& made = add_repository(path[1], name);
    made.is_private = !asked.body.value("public", false);
    return json(201, bitbucket_server_repository(made));
  }
  if (path.size() < 4) return failure(404);
  auto* repository = find(path[1], path[3]);
  if (!repository) return failure(404);
  if (asked.is("GET", 4)) return json(200, bitbucket_server_repository(*repository));
  const auto& what = path[4];
  if (asked.is("GET", 5) && what == "default-branch") {
    return json(200, {{"displayId", repository->default_branch}});
  }
  if (asked.is("GET", 5) && (what == "branches" || what == "tags")) {
    auto out = Json::array();
    for (const auto& name : what == "branches" ? repository->branches : repository->tags) {
      out.push_back({{"displayId", name}});
    }
    return bitbucket_server_page(asked, out);
  }
  if (asked.method == "GET" && what == "raw") {
    const auto found = repository->files.find(rest_of(path, 5));
    const auto ref = asked.query.get("at");
    const bool has_ref = repository->branches.contains(ref) || repository->tags.contains(ref);
    if (found == repository->files.end() || !has_ref) return failure(404);
    return raw(found->second);
  }
  const auto shown = [&](std::size_t number) {
    const auto& from = repository->pull_requests[number - 1];
    const bool is_merged = from.state == "merged";
    Json out{{"id", number},
             {"links",
              {{"self", Json::array({{{"href", "https://bitbucket.example.test/pr/" +
                                                   std::to_string(number)}}})}}},
             {"title", from.title},
             {"description", from.description},
             {"author", {{"user", {{"name", kLogin}}}}},
             {"toRef", {{"displayId", from.base}}},
             {"fromRef", {{"displayId", from.head}}},
             {"createdDate", 1'772'615'727'000},
             {"state", from.state == "open" ? "OPEN"
                       : is_merged          ? "MERGED"
                                            : "DECLINED"}};
    if (is_merged) out["properties"] = {{"mergeCommit", {{"id", kMergeCommit}}}};
    return out;
  };
  if (asked.is("POST", 5) && what == "pull-requests") {
    if (!asked.may_write) return failure(403);
    auto head = asked.body["fromRef"].value("id", "");
    auto base = asked.body["toRef"].value("id", "");
    if (!head.starts_with("refs/heads/") || !base.starts_with("refs/heads/")) return failure(400);
    head = head.substr(11);
    base = base.substr(11);
    if (!repository->branches.contains(head)) return failure(404);
    for (const auto& open : repository->pull_requests) {
      if (open.head == head && open.state == "open") return failure(409);
    }
    repository->pull_requests.push_back({.title = asked.body.value("title", ""),
                                         .description = asked.body.value("description", ""),
                                         .head = head,
                                         .base = base});
    return json(201, shown(repository->pull_requests.size()));
  }
  if (asked.is("GET", 6) && what == "pull-requests") {
    const auto number = std::stoul(path[5]);
    if (number < 1 || number > repository->pull_requests.size()) return failure(404);
    return json(200, shown(number));
  }
  const auto hook = [](const Hook& from) {
    return Json{{"id", from.id}, {"url", from.url}, {"active", true}};
  };
  if (what == "webhooks" && !asked.may_write) return failure(401);
  if (asked.is("GET", 5) && what == "webhooks") {
    auto out = Json::array();
    for (const auto& from : repository->hooks) out.push_back(hook(from));
    return bitbucket_server_page(asked, out);
  }
  if (asked.is("POST", 5) && what == "webhooks") {
    repository->hooks.push_back({.id = ++last_id_,
                                 .url = asked.body.value("url", ""),
                                 .secret = asked.body["configuration"].value("secret", "")});
    return json(201, hook(repository->hooks.back()));
  }
  if (asked.is("DELETE", 6) && what == "webhooks") {
    const auto erased = std::erase_if(
        repository->hooks, [&](const Hook& from) { return std::to_string(from.id) == path[5]; });
    return erased == 0 ? failure(404) : http::Response{.status = 204};
  }
  return failure(404);
}

}  // namespace gitops::test
