#include "common/core/encoding.hpp"
#include "doubles/fake_git_hosts.hpp"

// GitLab (docs.gitlab.com/api/rest).
namespace gitops::test {

using Json = nlohmann::json;

Json FakeGitHost::gitlab_project(const Repository& repository, bool may_write) const {
  const auto full_name = repository.owner + "/" + repository.name;
  const bool is_group = repository.owner != kLogin;
  return {
      {"id", repository.id},
      {"path_with_namespace", full_name},
      {"visibility", repository.is_private ? "private" : "public"},
      {"namespace",
       {{"full_path", repository.owner},
        {"kind", is_group ? "group" : "user"},
        {"avatar_url", nullptr}}},
      {"default_branch", repository.default_branch},
      {"http_url_to_repo", "https://gitlab.example.test/" + full_name + ".git"},
      {"ssh_url_to_repo", "git@gitlab.example.test:" + full_name + ".git"},
      {"web_url", "https://gitlab.example.test/" + full_name},
      {"last_activity_at", "2026-03-04T09:15:27.412Z"},
      {"open_issues_count", 3},
      {"permissions",
       {{"project_access", nullptr}, {"group_access", {{"access_level", may_write ? 50 : 20}}}}}};
}

http::Response FakeGitHost::answer_gitlab(const ParsedRequest& asked) {
  const auto& path = asked.path;
  if (path.empty()) return failure(404);
  if (asked.is("GET", 1) && path[0] == "user") {
    return json(200, {{"id", 7},
                      {"username", kLogin},
                      {"name", "Dana Example"},
                      {"email", mail_ ? Json(*mail_) : Json("")},
                      {"bot", false},
                      {"avatar_url", "https://gitlab.example.test/7.png"}});
  }
  if (asked.is("GET", 2) && path[0] == "personal_access_tokens" && path[1] == "self") {
    return json(200, {{"active", true},
                      {"scopes", asked.may_write ? Json{"api"} : Json{"read_repository"}}});
  }
  if (asked.is("GET", 1) && path[0] == "groups") {
    return numbered_page(asked, Json::array({{{"full_path", kOrganisation}}}), "per_page", 100);
  }
  if (asked.is("GET", 2) && path[0] == "namespaces") {
    return path[1] == kOrganisation ? json(200, {{"id", 55}}) : failure(404);
  }
  if (asked.is("GET", 1) && path[0] == "projects") {
    auto out = Json::array();
    for (const auto* project : all(asked.query.get("search"))) {
      out.push_back(gitlab_project(*project, asked.may_write));
    }
    return numbered_page(asked, out, "per_page", 100);
  }
  if (asked.is("POST", 1) && path[0] == "projects") {
    if (!asked.may_write) return failure(403);
    const auto name = asked.body.value("path", "");
    const std::string owner = asked.body.value("namespace_id", "") == "55" ? kOrganisation : kLogin;
    if (name.empty() || find(owner, name)) {
      return json(400, {{"message", {{"name", Json{"has already been taken"}}}}});
    }
    auto& made = add_repository(owner, name);
    made.is_private = asked.body.value("visibility", "") != "public";
    return json(201, gitlab_project(made, true));
  }
  if (path[0] != "projects" || path.size() < 2) return failure(404);
  const auto slash = path[1].rfind('/');
  if (slash == std::string::npos) return failure(404);
  auto* project = find(path[1].substr(0, slash), path[1].substr(slash + 1));
  if (!project) return failure(404);
  if (asked.is("GET", 2)) return json(200, gitlab_project(*project, asked.may_write));
  const auto& what = path[2];
  if (asked.is("GET", 4) && what == "repository") {
    auto out = Json::array();
    for (const auto& name : path[3] == "branches" ? project->branches : project->tags) {
      out.push_back({{"name", name}});
    }
    return numbered_page(asked, out, "per_page", 100);
  }
  if (asked.is("GET", 5) && what == "repository" && path[3] == "files") {
    const auto found = project->files.find(path[4]);
    const auto ref = asked.query.get("ref");
    const bool has_ref = project->branches.contains(ref) || project->tags.contains(ref);
    if (found == project->files.end() || !has_ref) return failure(404);
    return json(200, {{"file_path", path[4]},
                      {"encoding", "base64"},
                      {"content", base64_encode(found->second)},
                      {"blob_id", git_blob_id(found->second)},
                      {"last_commit_id", kCommit}});
  }
  const auto shown = [&](std::size_t number) {
    const auto& from = project->pull_requests[number - 1];
    const bool is_merged = from.state == "merged";
    return Json{
        {"iid", number},
        {"id", 1000 + number},
        {"web_url", "https://gitlab.example.test/mr/" + std::to_string(number)},
        {"title", from.title},
        {"description", from.description},
        {"author", {{"username", kLogin}, {"avatar_url", "https://gitlab.example.test/7.png"}}},
        {"target_branch", from.base},
        {"source_branch", from.head},
        {"created_at", "2026-03-04T09:15:27.412Z"},
        {"state", from.state == "open" ? "opened" : from.state},
        {"sha", kCommit},
        {"merge_commit_sha", is_merged ? Json(kMergeCommit) : Json()}};
  };
  if (asked.is("POST", 3) && what == "merge_requests") {
    if (!asked.may_write) return failure(403);
    const auto head = asked.body.value("source_branch", "");
    for (const auto& open : project->pull_requests) {
      if (open.head == head && open.state == "open") {
        return json(409, {{"message", Json{"Another open merge request already exists"}}});
      }
    }
    project->pull_requests.push_back({.title = asked.body.value("title", ""),
                                      .description = asked.body.value("description", ""),
                                      .head = head,
                                      .base = asked.body.value("target_branch", "")});
    return json(201, shown(project->pull_requests.size()));
  }
  if (asked.is("GET", 4) && what == "merge_requests") {
    const auto number = std::stoul(path[3]);
    if (number < 1 || number > project->pull_requests.size()) return failure(404);
    return json(200, shown(number));
  }
  if (asked.is("POST", 4) && what == "statuses") {
    if (!asked.may_write) return failure(403);
    project->statuses[path[3]].push_back(asked.body);
    return json(201, asked.body);
  }
  if (what == "hooks" && !asked.may_write) return failure(403);
  const auto hook = [](const Hook& from) {
    return Json{{"id", from.id}, {"url", from.url}, {"alert_status", "executable"}};
  };
  if (asked.is("GET", 3) && what == "hooks") {
    auto out = Json::array();
    for (const auto& from : project->hooks) out.push_back(hook(from));
    return numbered_page(asked, out, "per_page", 100);
  }
  if (asked.is("POST", 3) && what == "hooks") {
    project->hooks.push_back({.id = ++last_id_,
                              .url = asked.body.value("url", ""),
                              .secret = asked.body.value("token", "")});
    return json(201, hook(project->hooks.back()));
  }
  if (asked.is("DELETE", 4) && what == "hooks") {
    const auto erased = std::erase_if(
        project->hooks, [&](const Hook& from) { return std::to_string(from.id) == path[3]; });
    return erased == 0 ? failure(404) : http::Response{.status = 204};
  }
  return failure(404);
}

}  // namespace gitops::test
