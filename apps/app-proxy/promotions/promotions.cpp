#include "app-proxy/promotions/promotions.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "app-proxy/providers/git_error.hpp"
#include "app-proxy/providers/providers.hpp"
#include "app-proxy/resolvers/commits.hpp"
#include "common/core/json_value.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;
using control_plane::ApplicationId;
using control_plane::PromotionData;

constexpr std::size_t kMaxNameLength = 253;

std::unexpected<Error> refuse(int status, std::string message) {
  return std::unexpected(Error{
      .code = error_code_of_status(status), .message = std::move(message), .http_status = status});
}

// Sets the status of the response. The status of a Git host or the control plane is not passed on.
Error answered(Error error) {
  using enum ErrorCode;
  switch (error.code) {
    case invalid_argument:
    case unsupported:
    case too_large:
      error.http_status = 400;
      break;
    case not_found:
      error.http_status = 404;
      break;
    case conflict:
      error.http_status = 409;
      break;
    case too_many_requests:
      error.http_status = 429;
      break;
    case timeout:
      error.http_status = 504;
      break;
    case unavailable:
      error.http_status = 503;
      break;
    default:
      error.http_status = 502;
  }
  return error;
}

std::unexpected<Error> nothing_to_promote() {
  return refuse(400, std::string(kNothingToPromote));
}

Result<ApplicationId> application_id(const Json& body, const char* member) {
  ApplicationId id{.runtime = string_at(body, {member, "runtime"}),
                   .application_namespace = string_at(body, {member, "namespace"}),
                   .name = string_at(body, {member, "name"})};
  for (const auto& [key, value] : {std::pair("runtime", &id.runtime),
                                   {"namespace", &id.application_namespace},
                                   {"name", &id.name}}) {
    if (value->empty() || value->size() > kMaxNameLength) {
      return refuse(400, std::string(member) + "." + key + " should not be empty");
    }
  }
  return id;
}

// Returns "apps" for "./apps/".
std::string folder_of(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  return path == "." ? std::string() : std::string(path);
}

std::string render_id(const ApplicationId& id) {
  return id.application_namespace + "/" + id.name;
}

Json pull_request_json(const std::string& repository, const PullRequest& made) {
  return {{"repo", repository},
          {"id", made.id},
          {"url", made.url},
          {"title", made.title},
          {"description", made.description},
          {"author", made.author},
          {"avatarUrl", made.avatar_url},
          {"baseBranch", made.base_branch},
          {"headBranch", made.head_branch},
          {"createdAt", made.created_at},
          {"state", made.is_open ? "OPEN" : "CLOSED"},
          {"isMerged", made.is_merged},
          {"mergeCommitSHA", made.merge_commit_sha.empty() ? Json() : Json(made.merge_commit_sha)}};
}

}  // namespace

Result<PromotionRequest> parse_promotion(PromotionKind kind, std::string_view text) {
  const Json body = parse_json_object(text);
  if (!body.is_object()) return refuse(400, "expected a JSON object");
  auto source = application_id(body, "srcAppId");
  if (!source) return std::unexpected(std::move(source.error()));
  auto destination = application_id(body, "destAppId");
  if (!destination) return std::unexpected(std::move(destination.error()));
  PromotionRequest request{.source = std::move(*source),
                           .destination = std::move(*destination),
                           .source_commit = string_at(body, {"srcAppCommitSha"})};
  if (!request.source_commit.empty() && !is_object_id(request.source_commit)) {
    return refuse(400, "srcAppCommitSha should be the full id of a commit");
  }
  const std::string otherwise =
      "Promote " + render_id(request.source) + " to " + render_id(request.destination);
  if (kind == PromotionKind::commit) {
    request.message = string_at(body, {"message"});
    if (request.message.empty()) request.message = otherwise;
    return request;
  }
  request.title = string_at(body, {"title"});
  if (request.title.empty()) return refuse(400, "title should not be empty");
  request.head = string_at(body, {"head"});
  const auto head = parse_branch(request.head);
  if (!head) return refuse(400, "head: " + head.error().message);
  request.head = *head;
  request.pull_request_description = string_at(body, {"description"});
  request.message = string_at(body, {"commitMessage"});
  if (request.message.empty()) request.message = request.title;
  request.description = string_at(body, {"commitDescription"});
  return request;
}

Result<RepositoryUrl> repository_of_account(const control_plane::Identity& account,
                                            std::string_view text, Scheme scheme) {
  auto url = parse_repository_url(text, scheme);
  if (!url) {
    return refuse(400, "the repository of an application is not usable: " + url.error().message);
  }
  if (const auto config = parse_specifier(account.shared_config_repo, scheme);
      config && config->repository.http.host_header() == url->http.host_header()) {
    return url;
  }
  const auto root =
      make_api_root(account.git_provider, account.git_api_url,
                    scheme == Scheme::http_too ? PlainHttp::insecure_allowed : PlainHttp::refused);
  if (root && clone_url_of(*root, text)) return url;
  return refuse(400, "the repository of an application is at " + url->http.host +
                         ", which is not the account's Git host; the runtime's token is not sent "
                         "there");
}

Task<Result<PromotionData>> Promotions::allowed_data(const User& user,
                                                     const PromotionRequest& request,
                                                     Deadline deadline) {
  const bool is_free = user.is_runtime || user.is_admin;
  auto data = co_await dependencies_.control_plane.promotion_data(request.source,
                                                                  request.destination, deadline);
  if (!data) {
    if (!is_free && data.error().code == ErrorCode::not_found) co_return refuse(403, "Forbidden");
    co_return std::unexpected(answered(std::move(data.error())));
  }
  if (is_free) co_return data;
  for (const auto& allowed :
       {dependencies_.rules.check(user, Action::view, data->source.entity),
        dependencies_.rules.check(user, Action::promote_to, data->destination.entity)}) {
    if (allowed) continue;
    if (allowed.error().code == ErrorCode::forbidden) co_return refuse(403, "Forbidden");
    co_return std::unexpected(answered(allowed.error()));
  }
  co_return data;
}

Task<Result<CommitRequest>> Promotions::plan(const User& user, const PromotionRequest& request,
                                             const PromotionData& data, Deadline deadline) {
  auto credential = dependencies_.token.credential();
  if (credential.password.empty()) {
    co_return refuse(503, "the runtime has no Git token (GIT_PASSWORD), with which it promotes");
  }
  auto from = own_repository(data.source.repository);
  if (!from) co_return std::unexpected(std::move(from.error()));
  auto to = own_repository(data.destination.repository);
  if (!to) co_return std::unexpected(std::move(to.error()));
  std::vector<PromotionRule> rules;
  for (const auto& rule : data.rules) rules.push_back({rule.glob, rule.json_paths});
  auto source = co_await dependencies_.reader.read(
      {.repository = std::move(*from),
       .branch = data.source.revision,
       .commit = request.source_commit,
       .folder = folder_of(data.source.path),
       .credential = credential,
       .wanted = [rules](std::string_view path) { return is_promoted(rules, path); }},
      deadline);
  if (!source) co_return std::unexpected(answered(public_commit_error(std::move(source.error()))));
  std::vector<PromotedFile> files;
  for (auto& file : source->files) {
    files.push_back({.path = std::move(file.path), .content = std::move(file.content)});
  }
  auto changes = promotion_changes(rules, files, folder_of(data.destination.path));
  if (!changes) co_return std::unexpected(answered(std::move(changes.error())));
  if (changes->empty()) co_return nothing_to_promote();
  std::string description = request.description;
  if (!description.empty()) description += "\n\n";
  description += "Promoted from " + render_id(request.source) + " at " + source->commit +
                 ". Requested by " + (user.name.empty() ? user.id : user.name) +
                 " through runtime " + dependencies_.runtime + ".";
  co_return CommitRequest{.repository = std::move(*to),
                          .branch = data.destination.revision,
                          .changes = std::move(*changes),
                          .message = request.message,
                          .description = std::move(description),
                          .author = {.name = "GitOps runtime " + dependencies_.runtime,
                                     .email = "gitops-runtime@noreply.invalid"},
                          .credential = std::move(credential)};
}

Task<Result<std::string>> Promotions::promote(PromotionKind kind, const User& user,
                                              PromotionRequest request, Deadline deadline) {
  const auto data = co_await allowed_data(user, request, deadline);
  if (!data) co_return std::unexpected(data.error());
  auto commit = co_await plan(user, request, *data, deadline);
  if (!commit) co_return std::unexpected(std::move(commit.error()));
  if (kind == PromotionKind::pull_request) {
    co_return co_await open_pull_request(request, std::move(*commit), deadline);
  }
  const GitAuthor author = commit->author;
  auto made = co_await dependencies_.committer.commit(std::move(*commit), deadline);
  if (!made) {
    if (made.error().subcode == kNothingToCommit) co_return nothing_to_promote();
    co_return std::unexpected(answered(public_commit_error(std::move(made.error()))));
  }
  co_return to_text(Json{{"COMMIT_SHA", made->sha},
                         {"COMMIT_MESSAGE", request.message},
                         {"COMMIT_AUTHOR", author.name + " <" + author.email + ">"}});
}

Task<Result<std::string>> Promotions::open_pull_request(const PromotionRequest& request,
                                                        CommitRequest commit, Deadline deadline) {
  const auto account = dependencies_.users.own();
  auto root = make_api_root(
      account.git_provider, account.git_api_url,
      dependencies_.scheme == Scheme::http_too ? PlainHttp::insecure_allowed : PlainHttp::refused);
  if (!root) co_return refuse(400, "the account's Git host has no pull requests that are known");
  const auto provider = make_provider(dependencies_.hosts, std::move(*root));
  const GitAccess access{.token = commit.credential.password,
                         .username = commit.credential.username};
  const auto name = parse_repository_name(commit.repository.name);
  if (!name) co_return std::unexpected(answered(name.error()));
  std::string base = commit.branch;
  if (base.empty() || base == "HEAD") {
    const auto repository = co_await provider->repository(access, *name, deadline);
    if (!repository) co_return std::unexpected(answered(repository.error()));
    base = repository->value.default_branch;
  }
  if (request.head == base) {
    co_return refuse(400, "head is the destination's own branch; expected another one");
  }
  const FolderRequest head{.repository = commit.repository,
                           .branch = request.head,
                           .credential = commit.credential,
                           .wanted = [](std::string_view) { return false; }};
  commit.branch = request.head;
  commit.new_branch_from = base;
  std::string sha;
  auto made = co_await dependencies_.committer.commit(std::move(commit), deadline);
  if (made) {
    sha = made->sha;
  } else if (made.error().subcode != kNothingToCommit) {
    co_return std::unexpected(answered(public_commit_error(std::move(made.error()))));
  } else {
    // The branch may exist from an earlier request whose response or pull request was lost.
    const auto present = co_await dependencies_.reader.read(head, deadline);
    if (!present && is_missing_branch(present.error())) co_return nothing_to_promote();
    if (!present) co_return std::unexpected(answered(public_commit_error(present.error())));
    sha = present->commit;
  }
  const auto opened =
      co_await provider->create_pull_request(access, *name,
                                             {.title = request.title,
                                              .description = request.pull_request_description,
                                              .head = request.head,
                                              .base = base},
                                             deadline);
  if (!opened) {
    Error error = answered(opened.error());
    error.message =
        "branch " + request.head + " has commit " + sha + "; its pull request: " + error.message;
    co_return std::unexpected(std::move(error));
  }
  Json answer = pull_request_json(name->full(), *opened);
  answer["COMMIT_SHA"] = sha;
  co_return to_text(answer);
}

}  // namespace gitops::app_proxy
