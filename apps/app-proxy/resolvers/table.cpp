#include "app-proxy/resolvers/table.hpp"

#include <algorithm>
#include <utility>

namespace gitops::app_proxy {
namespace {

using graphql::Call;

// Fields of the schema whose implementation is not there yet.
Result<graphql::Json> not_yet(Call& call) {
  return fail(ErrorCode::unsupported,
              "\"" + std::string(call.field()) + "\" is not available in this version");
}

// Why the caller may not ask; nothing when it may.
std::optional<Error> refusal(Permission permission, const Caller& caller) {
  if (permission == Permission::anyone) return std::nullopt;
  if (!caller.user) {
    return Error{.code = ErrorCode::unauthenticated,
                 .message = "Unauthorized: Invalid token.",
                 .http_status = 401};
  }
  if (permission == Permission::admin && !caller.user->is_admin) {
    return Error{.code = ErrorCode::forbidden,
                 .message = "only an administrator of the account may do this",
                 .http_status = 403};
  }
  return std::nullopt;
}

graphql::Value failure(Error error) {
  return graphql::Value(std::make_unique<Error>(std::move(error)));
}

// The row's function behind the check of its permission.
graphql::RowOf<graphql::Root> guarded(const FieldRow& from) {
  const auto permission = from.permission;
  if (from.row.later) {
    return {from.field,
            [permission, run = from.row.later](const graphql::Root& root,
                                               Call& call) -> Task<graphql::Value> {
              if (auto refused = refusal(permission, call.context<Caller>())) {
                co_return failure(std::move(*refused));
              }
              co_return co_await run(&root, call);
            }};
  }
  return {
      from.field,
      [permission, run = from.row.now](const graphql::Root& root, Call& call) -> graphql::Value {
        if (auto refused = refusal(permission, call.context<Caller>())) {
          return failure(std::move(*refused));
        }
        return run(&root, call);
      }};
}

}  // namespace

std::vector<FieldRow> table(const Parts& parts) {
  using enum Permission;
  return {
      read("versionInfo", anyone, [&parts] { return &parts.version; }),

      read("gitIntegrations", user, not_yet),
      read("gitIntegration", user, not_yet),
      change("addGitIntegration", admin, {"args.name", "args.provider", "args.apiUrl"}, not_yet),
      change("editGitIntegration", admin, {"args.name", "args.apiUrl"}, not_yet),
      change("removeGitIntegration", admin, {"name"}, not_yet),
      change("registerToGitIntegration", user, {"args.name"}, not_yet),
      change("deregisterFromGitIntegration", user, {"name"}, not_yet),
      read("validateGitProvider", user, not_yet),

      read("gitOrganizations", user, not_yet),
      read("gitRepositories", user, not_yet),
      read("repositoryBranchesAndTags", user, not_yet),
      read("readFile", user, not_yet),
      read("pullRequest", user, not_yet),
      change("createPullRequest", user, {"args.repo", "args.head", "args.base"}, not_yet),

      change("commitFiles", user, {"args.repo", "args.branchName"}, not_yet),
      change("deleteFiles", user, {"args.repo", "args.branchName"}, not_yet),
  };
}

graphql::Resolvers resolvers(const std::vector<FieldRow>& rows) {
  graphql::Resolvers to;
  for (const FieldRow& row : rows) {
    if (row.root == RootType::query) {
      to.query({guarded(row)});
    } else {
      to.mutation({guarded(row)});
    }
  }
  add_version_types(to);
  for (const char* type :
       {"GitIntegration", "UserGitIntegration", "GitOrganization", "Repository", "RepositoriesPage",
        "RepositoryBranchesAndTagsOutput", "FileRevision", "PullRequest", "Commit", "Committer"}) {
    to.json(type);
  }
  return to;
}

Permission permission_of(const std::vector<FieldRow>& rows, RootType root, std::string_view field) {
  if (field == "__typename") return Permission::anyone;
  const auto found = std::ranges::find_if(
      rows, [&](const FieldRow& row) { return row.root == root && row.field == field; });
  return found == rows.end() ? Permission::user : found->permission;
}

}  // namespace gitops::app_proxy
