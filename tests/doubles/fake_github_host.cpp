#include "common/core/encoding.hpp"
#include "doubles/fake_git_hosts.hpp"

// GitHub (docs.github.com/rest) and Gitea (docs.gitea.com/api).
namespace gitops::test {

using Json = nlohmann::json;
using app_proxy::ProviderKind;

Json FakeGitHost::github_repository(const Repository& repository, bool may_write) const {
  may_write = may_write && !repository.is_read_only;
  const bool is_organisation = repository.owner != kLogin;
  Json owner{{"login", repository.owner}, {"avatar_url", "https://avatars.example.test/1"}};
  if (kind_ == ProviderKind::github) owner["type"] = is_organisation ? "Organization" : "User";
  const auto full_name = repository.owner + "/" + repository.name;
  return {
      {"id", repository.id},
      {"full_name", full_name},
      {"name", repository.name},
      {"private", repository.is_private},
      {"owner", owner},
      {"html_url", "https://git.example.test/" + full_name},
      {"clone_url", repository.clone_url.empty() ? "https://git.example.test/" + full_name + ".git"
                                                 : repository.clone_url},
      {"ssh_url", "git@git.example.test:" + full_name + ".git"},
      {"default_branch", repository.default_branch},
      {"open_issues_count", 3},
      {"pushed_at", "2026-03-04T09:15:27Z"},
      {"updated_at", "2026-03-04T09:15:27Z"},
      {"permissions", {{"admin", may_write}, {"push", may_write}, {"pull", true}}}};
}

http::Response FakeGitHost::answer_github(const ParsedRequest& asked) {
  const bool is_gitea = kind_ == ProviderKind::gitea;
  const auto page_size = is_gitea ? "limit" : "per_page";
  const std::size_t most = is_gitea ? 50 : 100;
  const auto& path = asked.path;
  const auto named = [](const std::set<std::string>& names) {
    auto out = Json::array();
    for (const auto& name : names) out.push_back({{"name", name}, {"commit", {{"sha", kCommit}}}});
    return out;
  };
  const auto listed = [&](const std::vector<Repository*>& repositories) {
    auto out = Json::array();
    for (const auto* repository : repositories) {
      out.push_back(github_repository(*repository, asked.may_write));
    }
    return out;
  };
  if (path.empty()) return failure(404);
  if (asked.is("GET", 1) && path[0] == "user") {
    const auto found = users_.find(asked.token);
    const User& user = found == users_.end() ? users_.at(kToken) : found->second;
    const bool shows_mail = mail_ && user.login == kLogin;
    auto response = json(200, {{"id", user.id},
                               {"login", user.login},
                               {is_gitea ? "full_name" : "name", user.name},
                               {"email", shows_mail ? Json(*mail_) : Json()},
                               {"avatar_url", "https://avatars.example.test/7"}});
    if (!is_gitea) {
      response.headers.add("X-OAuth-Scopes",
                           asked.may_write ? "repo, admin:repo_hook" : "read:org");
    }
    return response;
  }
  if (asked.is("GET", 2) && path[1] == "emails" && !is_gitea) return failure(404);
  if (asked.is("GET", 2) && path[0] == "user" && path[1] == "orgs") {
    return numbered_page(asked, Json::array({{{is_gitea ? "username" : "login", kOrganisation}}}),
                         page_size, most);
  }
  if (asked.is("GET", 2) && path[0] == "user" && path[1] == "repos") {
    return numbered_page(asked, listed(all()), page_size, most);
  }
  if (asked.is("GET", 2) && path[0] == "search" && !is_gitea) {
    // Words, then qualifiers.
    const auto q = asked.query.get("q");
    auto found = listed(all(q.substr(0, q.find(' '))));
    auto response = numbered_page(asked, found, page_size, most);
    response.body =
        Json{{"total_count", found.size()}, {"items", Json::parse(response.body)}}.dump();
    return response;
  }
  if (asked.is("GET", 2) && path[0] == "repos" && path[1] == "search" && is_gitea) {
    auto response = numbered_page(asked, listed(all(asked.query.get("q"))), page_size, most);
    response.body = Json{{"ok", true}, {"data", Json::parse(response.body)}}.dump();
    return response;
  }
  const bool makes_own = asked.is("POST", 2) && path[0] == "user" && path[1] == "repos";
  const bool makes_org = asked.is("POST", 3) && path[0] == "orgs" && path[2] == "repos";
  if (makes_own || makes_org) {
    if (!asked.may_write) return failure(403);
    const auto name = asked.body.value("name", "");
    if (name.empty()) return failure(422);
    const std::string owner = makes_own ? kLogin : path[1];
    if (find(owner, name)) return failure(is_gitea ? 409 : 422);
    auto& made = add_repository(owner, name);
    made.is_private = asked.body.value("private", false);
    return json(201, github_repository(made, true));
  }
  if (path[0] != "repos" || path.size() < 3) return failure(404);
  auto* repository = find(path[1], path[2]);
  if (!repository) return failure(404);
  const bool may_write = asked.may_write && !repository->is_read_only;
  if (asked.is("GET", 3)) return json(200, github_repository(*repository, may_write));
  const auto& what = path[3];
  if (asked.is("GET", 4) && what == "branches") {
    return numbered_page(asked, named(repository->branches), page_size, most);
  }
  if (asked.is("GET", 4) && what == "tags") {
    return numbered_page(asked, named(repository->tags), page_size, most);
  }
  if (asked.method == "GET" && what == "contents" && path.size() > 4) {
    std::string file = path[4];
    for (std::size_t i = 5; i < path.size(); ++i) file += "/" + path[i];
    const auto found = repository->files.find(file);
    const auto ref = asked.query.get("ref");
    const bool has_ref = repository->branches.contains(ref) || repository->tags.contains(ref);
    if (found == repository->files.end() || !has_ref) return failure(404);
    return json(200, {{"type", "file"},
                      {"encoding", "base64"},
                      {"path", file},
                      {"sha", git_blob_id(found->second)},
                      {"content", base64_encode(found->second) + "\n"}});
  }
  const auto shown = [&](std::size_t number) {
    const auto& pull_request = repository->pull_requests[number - 1];
    const bool is_merged = pull_request.state == "merged";
    return Json{{"number", number},
                {"html_url", "https://git.example.test/pulls/" + std::to_string(number)},
                {"title", pull_request.title},
                {"body", pull_request.description},
                {"user", {{"login", kLogin}, {"avatar_url", "https://avatars.example.test/7"}}},
                {"base", {{"ref", pull_request.base}}},
                {"head", {{"ref", pull_request.head}}},
                {"created_at", "2026-03-04T09:15:27Z"},
                {"state", pull_request.state == "open" ? "open" : "closed"},
                {"merged", is_merged},
                {"merge_commit_sha", is_merged ? Json(kMergeCommit) : Json(kCommit)}};
  };
  if (asked.is("POST", 4) && what == "pulls") {
    if (!may_write) return failure(403);
    const auto head = asked.body.value("head", "");
    if (!repository->branches.contains(head)) return failure(is_gitea ? 404 : 422);
    for (const auto& open : repository->pull_requests) {
      if (open.head != head || open.state != "open") continue;
      if (is_gitea) return failure(409);
      return json(422, {{"message", "Validation Failed"},
                        {"errors", Json::array({{{"message", "A pull request already exists"}}})}});
    }
    repository->pull_requests.push_back({.title = asked.body.value("title", ""),
                                         .description = asked.body.value("body", ""),
                                         .head = head,
                                         .base = asked.body.value("base", "")});
    return json(201, shown(repository->pull_requests.size()));
  }
  if (asked.is("GET", 5) && what == "pulls") {
    const auto number = std::stoul(path[4]);
    if (number < 1 || number > repository->pull_requests.size()) return failure(404);
    return json(200, shown(number));
  }
  if (asked.is("POST", 5) && what == "statuses") {
    if (!may_write) return failure(403);
    if (asked.body.value("state", "").empty()) return failure(422);
    repository->statuses[path[4]].push_back(asked.body);
    return json(201, asked.body);
  }
  const auto hook = [](const Hook& from) {
    return Json{{"id", from.id}, {"active", true}, {"config", {{"url", from.url}}}};
  };
  if (what == "hooks" && !may_write) return failure(is_gitea ? 403 : 404);
  if (asked.is("GET", 4) && what == "hooks") {
    auto out = Json::array();
    for (const auto& from : repository->hooks) out.push_back(hook(from));
    return numbered_page(asked, out, page_size, most);
  }
  if (asked.is("POST", 4) && what == "hooks") {
    if (is_gitea != asked.body.contains("type")) return failure(422);
    const auto& config = asked.body["config"];
    repository->hooks.push_back(
        {.id = ++last_id_, .url = config.value("url", ""), .secret = config.value("secret", "")});
    return json(201, hook(repository->hooks.back()));
  }
  if (asked.is("DELETE", 5) && what == "hooks") {
    const auto erased = std::erase_if(
        repository->hooks, [&](const Hook& from) { return std::to_string(from.id) == path[4]; });
    return erased == 0 ? failure(404) : http::Response{.status = 204};
  }
  if (asked.is("POST", 5) && what == "git" && path[4] == "refs") {
    return failure(may_write ? 422 : 403);
  }
  return failure(404);
}

}  // namespace gitops::test
