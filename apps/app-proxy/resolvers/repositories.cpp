#include "app-proxy/resolvers/repositories.hpp"

#include <algorithm>
#include <utility>

#include "app-proxy/resolvers/arguments.hpp"
#include "app-proxy/resolvers/git_integrations.hpp"
#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

using graphql::Call;
using graphql::InputView;

// Returns the caller's account at the host of an integration.
Task<Result<GitAccount>> account_of(GitIntegrations& git, Call& call, InputView integration) {
  co_return shown(co_await git.open(actor_of(call), text_of(integration), call.deadline()));
}

// Returns the branch. "HEAD" and an empty text mean the default branch.
Task<Result<std::string>> branch_of(const GitAccount& account, const RepositoryName& name,
                                    std::string given, Deadline deadline) {
  if (!given.empty() && given != "HEAD") co_return given;
  auto repository = co_await account.provider->repository(account.access, name, deadline);
  if (!repository) co_return std::unexpected(shown(std::move(repository.error())));
  if (repository->value.default_branch.empty()) {
    co_return std::unexpected(Error{.code = ErrorCode::not_found,
                                    .message = "repository " + name.full() + " has no commits yet",
                                    .subcode = git_errors::kNotFound});
  }
  co_return std::move(repository->value.default_branch);
}

}  // namespace

Task<Result<std::vector<Organisation>>> git_organizations(GitIntegrations& git, Call& call) {
  const auto args = call["args"];
  const auto details = args["authDetails"];
  Result<GitAccount> account = GitAccount();
  if (details.exists()) {
    account = shown(co_await git.open_unstored(
        actor_of(call), text_of(details["provider"]), text_of(details["apiUrl"]),
        {Secret(text_of(details["password"])), text_of(details["username"])}, call.deadline()));
  } else {
    account = co_await account_of(git, call, args["integrationName"]);
  }
  if (!account) co_return std::unexpected(account.error());
  auto found = co_await account->provider->organisations(account->access, call.deadline());
  if (!found) co_return std::unexpected(shown(std::move(found.error())));
  co_return std::move(found->value);
}

Task<Result<RepositoriesPage>> git_repositories(GitIntegrations& git, Call& call) {
  const auto args = call["args"];
  const auto account = co_await account_of(git, call, args["integrationName"]);
  if (!account) co_return std::unexpected(account.error());
  const auto number = [](InputView value, std::int64_t otherwise, std::int64_t most) {
    return static_cast<std::size_t>(
        std::clamp<std::int64_t>(value.exists() ? value.integer() : otherwise, 1, most));
  };
  const RepositoryQuery query{.search = text_of(call["filter"]["name"]),
                              .page = number(args["page"], 1, 100'000),
                              .limit = number(args["limit"], 100, 200)};
  auto found = co_await account->provider->repositories(account->access, query, call.deadline());
  if (!found) co_return std::unexpected(shown(std::move(found.error())));
  RepositoriesPage page{.data = {}, .page = found->value.page, .has_next = found->value.has_next};
  page.data.reserve(found->value.repositories.size());
  for (auto& repository : found->value.repositories) {
    page.data.push_back({std::move(repository), account->root.kind});
  }
  co_return page;
}

Task<Result<BranchesAndTags>> repository_branches_and_tags(GitIntegrations& git, Call& call) {
  const auto name = parse_repository_name(call["repo"].text());
  if (!name) co_return std::unexpected(name.error());
  const auto account = co_await account_of(git, call, call["integrationName"]);
  if (!account) co_return std::unexpected(account.error());
  auto found =
      co_await account->provider->branches_and_tags(account->access, *name, call.deadline());
  if (!found) co_return std::unexpected(shown(std::move(found.error())));
  BranchesAndTags& all = found->value;
  if (!all.is_truncated) co_return std::move(all);
  // A truncated list begins with the default branch, which most callers need.
  auto repository = co_await account->provider->repository(account->access, *name, call.deadline());
  if (!repository) co_return std::unexpected(shown(std::move(repository.error())));
  if (auto& branch = repository->value.default_branch; !branch.empty()) {
    std::erase(all.branches, branch);
    all.branches.insert(all.branches.begin(), std::move(branch));
  }
  co_return std::move(all);
}

Task<Result<FileContent>> read_file(GitIntegrations& git, Call& call) {
  const auto args = call["args"];
  const auto name = parse_repository_name(args["repo"].text());
  if (!name) co_return std::unexpected(name.error());
  const auto path = text_of(args["path"]);
  if (auto checked = check_file_path(path); !checked) co_return std::unexpected(checked.error());
  const auto account = co_await account_of(git, call, args["integrationName"]);
  if (!account) co_return std::unexpected(account.error());
  const auto ref = co_await branch_of(*account, *name, text_of(args["ref"]), call.deadline());
  if (!ref) co_return std::unexpected(ref.error());
  auto file =
      co_await account->provider->read_file(account->access, *name, path, *ref, call.deadline());
  if (!file) co_return std::unexpected(shown(std::move(file.error())));
  if (!is_utf8(file->value.content)) {
    co_return fail(ErrorCode::unsupported, "file " + path + " is not text in UTF-8");
  }
  co_return std::move(file->value);
}

Task<Result<std::optional<PullRequestView>>> pull_request(GitIntegrations& git, Call& call) {
  const auto name = parse_repository_name(call["repo"].text());
  if (!name) co_return std::unexpected(name.error());
  const auto account = co_await account_of(git, call, call["integrationName"]);
  if (!account) co_return std::unexpected(account.error());
  auto found = co_await account->provider->pull_request(account->access, *name,
                                                        call["id"].integer(), call.deadline());
  if (found) {
    co_return std::optional<PullRequestView>(
        PullRequestView{std::move(found->value), name->full()});
  }
  if (found.error().code == ErrorCode::not_found) co_return std::optional<PullRequestView>();
  co_return std::unexpected(shown(std::move(found.error())));
}

Task<Result<PullRequestView>> create_pull_request(GitIntegrations& git, Call& call) {
  const auto args = call["args"];
  const auto name = parse_repository_name(args["repo"].text());
  if (!name) co_return std::unexpected(name.error());
  const auto account = co_await account_of(git, call, args["integrationName"]);
  if (!account) co_return std::unexpected(account.error());
  const auto base = co_await branch_of(*account, *name, text_of(args["base"]), call.deadline());
  if (!base) co_return std::unexpected(base.error());
  auto made =
      co_await account->provider->create_pull_request(account->access, *name,
                                                      {.title = text_of(args["title"]),
                                                       .description = text_of(args["description"]),
                                                       .head = text_of(args["head"]),
                                                       .base = *base},
                                                      call.deadline());
  if (!made) co_return std::unexpected(shown(std::move(made.error())));
  co_return PullRequestView{std::move(*made), name->full()};
}

void add_repository_types(graphql::Resolvers& to) {
  to.type<Organisation>("GitOrganization", {{"name", &Organisation::name}});
  to.type<RepositoriesPage>(
      "RepositoriesPage",
      {
          {"data", &RepositoriesPage::data},
          {"page", &RepositoriesPage::page},
          {"count", [](const RepositoriesPage& page) { return page.data.size(); }},
          {"hasNext", &RepositoriesPage::has_next},
      });
  // Returns a text of the repository, borrowed.
  const auto text = [](std::string Repository::* member) {
    return [member](const RepositoryView& shown) -> const std::string& {
      return (*shown.repository).*member;
    };
  };
  to.type<RepositoryView>(
      "Repository",
      {
          {"id", text(&Repository::id)},
          {"provider", [](const RepositoryView& shown) { return wire_name(shown.provider); }},
          {"fullName", text(&Repository::full_name)},
          {"isRepoPrivate",
           [](const RepositoryView& shown) { return shown.repository->is_private; }},
          {"pushedAt", text(&Repository::pushed_at)},
          {"openIssues", [](const RepositoryView& shown) { return shown.repository->open_issues; }},
          {"cloneUrl", text(&Repository::clone_url)},
          {"sshUrl", text(&Repository::ssh_url)},
          {"ownerLogin", text(&Repository::owner_login)},
          {"ownerAvatarUrl", text(&Repository::owner_avatar_url)},
          {"repoCreator", [](const RepositoryView&) { return nullptr; }},
          {"org",
           [](const RepositoryView& shown) -> const std::optional<std::string>& {
             return shown.repository->organisation;
           }},
          {"defaultBranch", text(&Repository::default_branch)},
          {"isRepoAdmin",
           [](const RepositoryView& shown) -> std::optional<bool> {
             const auto& permissions = shown.repository->permissions;
             if (!permissions) return std::nullopt;
             return permissions->admin;
           }},
          {"webUrl", text(&Repository::web_url)},
          {"project",
           [](const RepositoryView& shown) -> const std::optional<std::string>& {
             return shown.repository->project;
           }},
      });
  to.type<BranchesAndTags>("RepositoryBranchesAndTagsOutput",
                           {{"branches", &BranchesAndTags::branches},
                            {"tags", &BranchesAndTags::tags},
                            {"truncated", &BranchesAndTags::is_truncated}});
  to.type<FileContent>("FileRevision", {
                                           {"path", &FileContent::path},
                                           {"revision", &FileContent::revision},
                                           {"data", &FileContent::content},
                                       });
  const auto of = [](std::string PullRequest::* member) {
    return [member](const PullRequestView& shown) -> const std::string& {
      return shown.pull_request.*member;
    };
  };
  to.type<PullRequestView>(
      "PullRequest",
      {
          {"repo", &PullRequestView::repo},
          {"id", [](const PullRequestView& shown) { return shown.pull_request.id; }},
          {"url", of(&PullRequest::url)},
          {"title", of(&PullRequest::title)},
          {"description", of(&PullRequest::description)},
          {"author", of(&PullRequest::author)},
          {"avatarUrl", of(&PullRequest::avatar_url)},
          {"baseBranch", of(&PullRequest::base_branch)},
          {"headBranch", of(&PullRequest::head_branch)},
          {"createdAt", of(&PullRequest::created_at)},
          {"state",
           [](const PullRequestView& shown) {
             return shown.pull_request.is_open ? "OPEN" : "CLOSED";
           }},
          {"isMerged", [](const PullRequestView& shown) { return shown.pull_request.is_merged; }},
          {"mergeCommitSHA",
           [](const PullRequestView& shown) -> std::optional<std::string> {
             const auto& sha = shown.pull_request.merge_commit_sha;
             if (sha.empty()) return std::nullopt;
             return sha;
           }},
      });
}

}  // namespace gitops::app_proxy
