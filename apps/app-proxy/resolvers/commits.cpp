#include "app-proxy/resolvers/commits.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "app-proxy/errors/client_codes.hpp"
#include "app-proxy/resolvers/arguments.hpp"
#include "app-proxy/resolvers/git_integrations.hpp"
#include "common/core/log.hpp"

namespace gitops::app_proxy {
namespace {

using graphql::Call;
using graphql::InputView;

// Default message: "Update a.yaml", "Delete 3 files".
std::string message_for(std::string_view verb, const std::vector<FileChange>& changes) {
  return std::string(verb) + " " +
         (changes.size() == 1 ? changes.front().path : std::to_string(changes.size()) + " files");
}

// Common part of both fields. `request` has `changes` and their options.
Task<Result<CommitView>> commit(GitIntegrations& git, Committer& committer, Call& call,
                                CommitRequest request) {
  const auto args = call["args"];
  const auto name = parse_repository_name(args["repo"].text());
  if (!name) co_return std::unexpected(name.error());
  // Checked before any request is sent.
  if (auto checked = check_changes(request.changes); !checked) {
    co_return std::unexpected(checked.error());
  }
  request.branch = text_of(args["branchName"]);
  if (!args["msg"].text().empty()) request.message = text_of(args["msg"]);
  request.description = text_of(args["description"]);
  request.trace = call.context<Caller>().trace;
  const Deadline deadline = commit_deadline(call);
  const auto account =
      shown(co_await git.open(actor_of(call), text_of(args["integrationName"]), deadline));
  if (!account) co_return std::unexpected(account.error());
  auto repository = co_await account->provider->repository(account->access, *name, deadline);
  if (!repository) co_return std::unexpected(shown(std::move(repository.error())));
  auto url = clone_url_of(account->root, repository->value.clone_url);
  if (!url) co_return std::unexpected(std::move(url.error()));
  request.repository = std::move(*url);
  request.default_branch = repository->value.default_branch;
  co_return co_await commit_as(*account, committer, std::move(request), deadline);
}

}  // namespace

Task<Result<CommitView>> commit_as(const GitAccount& account, Committer& committer,
                                   CommitRequest request, Deadline deadline) {
  request.author = {.name = author_text(account.name).empty() ? account.login : account.name,
                    .email = account.mail};
  request.credential = {.username = git_username_of(account), .password = account.access.token};
  const GitAuthor author = request.author;
  // Most Git servers tell the default branch of an empty repository. The host is asked only after
  // one that does not.
  std::optional<CommitRequest> again;
  if (request.default_branch.empty() && (request.branch.empty() || request.branch == "HEAD")) {
    again = request;
    request.needs_default_branch = true;
  }
  auto made = co_await committer.commit(std::move(request), deadline);
  if (!made && again && made.error().subcode == kDefaultBranchUnknown) {
    if (const auto name = parse_repository_name(again->repository.name)) {
      const auto told = co_await account.provider->repository(account.access, *name, deadline);
      if (told) again->default_branch = told->value.default_branch;
    }
    made = co_await committer.commit(std::move(*again), deadline);
  }
  if (!made) co_return std::unexpected(public_commit_error(std::move(made.error())));
  co_return CommitView{.commit = std::move(*made), .author = author};
}

void prepare_clone(const GitAccount& account, Committer& committer,
                   const RepositoryUrl& repository) {
  auto url = clone_url_of(account.root, repository.to_string());
  if (!url) return;
  committer.prepare(std::move(*url),
                    {.username = git_username_of(account), .password = account.access.token});
}

Result<RepositoryUrl> clone_url_of(const ApiRoot& root, std::string_view text) {
  const auto refuse = [&](std::string_view subcode, std::string message) {
    return std::unexpected(
        Error{.code = ErrorCode::protocol, .message = std::move(message), .subcode = subcode});
  };
  auto url =
      parse_repository_url(text, root.url.scheme == "http" ? Scheme::http_too : Scheme::https_only);
  if (!url) {
    return refuse(git_errors::kBadAnswer,
                  root.url.host + " tells no usable clone URL: " + url.error().message);
  }
  if (url->http.host != root.url.host && url->http.host != root.web_host()) {
    return refuse(git_errors::kRedirected,
                  root.url.host + " has its repositories at " + url->http.host +
                      ", where the token of this integration is not sent; make an integration with "
                      "an API URL of that host");
  }
  return url;
}

std::string git_username_of(const GitAccount& account) {
  const std::string& given = account.access.username;
  // API tokens of Bitbucket Cloud are used with the mail address in REST, and with this name in
  // Git: support.atlassian.com/bitbucket-cloud/docs/using-api-tokens.
  if (given.contains('@') && account.root.kind == ProviderKind::bitbucket) {
    return "x-bitbucket-api-token-auth";
  }
  if (!given.empty()) return given;
  return account.login.empty() ? "git" : account.login;
}

Error public_commit_error(Error error) {
  using enum ErrorCode;
  const auto as = [&](std::string_view subcode, std::string_view what_to_do) {
    error.subcode = subcode;
    if (!what_to_do.empty()) error.message += "; " + std::string(what_to_do);
    return shown(std::move(error));
  };
  if (error.subcode == kNothingToCommit) {
    return as(git_errors::kNothingToCommit, "set allowEmpty to commit all the same");
  }
  if (error.subcode == kOutcomeUnknown) return error;
  static const Log log("git_commits");
  if (error.subcode == kNoSigningKey) {
    log.error("commits cannot be signed", {{"error", error.message}});
    return {.code = unavailable,
            .message = "the runtime has no usable key to sign commits with; see its log"};
  }
  if (is_clone_failure(error)) {
    log.error("a commit failed because of the local clone",
              {{"reason", error.subcode}, {"error", error.message}});
    return {.code = unavailable,
            .message =
                "the runtime cannot use its clone of the repository now; try again later, or "
                "see its log"};
  }
  if (error.subcode == kStopping) return {.code = unavailable, .message = error.message};
  // The error comes from an edit.
  if (error.subcode.starts_with("GIT_") || error.subcode.starts_with("INTEGRATION_") ||
      error.subcode == git_source_errors::kNameTaken) {
    return error;
  }
  switch (error.code) {
    case conflict:
      return as(git_errors::kConflict, "read it again, and repeat");
    case unauthenticated:
      return as(git_errors::kTokenRejected, "register a new token");
    case forbidden:
      if (error.subcode == kServerLimit) return as(git_errors::kRefused, {});
      return as(git_errors::kRefused, "check the rights of the token and the rules of the branch");
    case not_found:
      return as(git_errors::kNotFound, {});
    case too_large:  // our limits, unless the error is the server's
    case invalid_argument:
      if (error.http_status == 0) break;
      return as(git_errors::kRefused, {});
    case too_many_requests:
      if (error.http_status == 0) break;
      return as(git_errors::kThrottled, "try again later");
    case unavailable:
    case tls:
      return as(git_errors::kUnreachable, "try again later");
    case protocol:
    case invalid_data:
      return as(git_errors::kBadAnswer, {});
    default:  // error of the request itself, full queue, or timeout
      break;
  }
  error.subcode = {};
  return error;
}

Task<Result<CommitView>> commit_files(GitIntegrations& git, Committer& committer, Call& call) {
  const auto args = call["args"];
  CommitRequest request;
  for (const auto file : args["files"].items()) {
    request.changes.push_back({.path = text_of(file["path"]),
                               .content = text_of(file["data"]),
                               .revision = text_of(file["revision"])});
  }
  request.message = message_for("Update", request.changes);
  request.force = args["force"].is_true();
  request.allow_empty = args["allowEmpty"].is_true();
  co_return co_await commit(git, committer, call, std::move(request));
}

Task<Result<CommitView>> delete_files(GitIntegrations& git, Committer& committer, Call& call) {
  CommitRequest request;
  for (const auto path : call["args"]["paths"].items()) {
    request.changes.push_back({.path = text_of(path), .kind = FileChange::Kind::remove});
  }
  request.message = message_for("Delete", request.changes);
  co_return co_await commit(git, committer, call, std::move(request));
}

void add_commit_types(graphql::Resolvers& to) {
  const auto of = [](std::string CommitResult::* member) {
    return [member](const CommitView& shown) -> const std::string& { return shown.commit.*member; };
  };
  to.type<CommitView>(
      "Commit",
      {
          {"sha", of(&CommitResult::sha)},
          {"committer", &CommitView::author},
          {"date", [](const CommitView& shown) { return format_rfc3339(shown.commit.time); }},
          {"message", of(&CommitResult::message)},
          {"tags", [](const CommitView&) { return std::vector<std::string>(); }},
      });
  to.type<GitAuthor>("Committer", {
                                      {"name", &GitAuthor::name},
                                      {"email", &GitAuthor::email},
                                      {"avatarUrl", [](const GitAuthor&) { return nullptr; }},
                                      {"profileUrl", [](const GitAuthor&) { return nullptr; }},
                                  });
}

}  // namespace gitops::app_proxy
