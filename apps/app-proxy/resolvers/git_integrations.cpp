#include "app-proxy/resolvers/git_integrations.hpp"

#include <utility>

#include "app-proxy/resolvers/arguments.hpp"
#include "common/core/log.hpp"

namespace gitops::app_proxy {
namespace {

using graphql::Call;
using graphql::InputView;

SharingPolicy sharing_of(InputView policy) {
  return policy.text() == "ACCOUNT_ADMINS" ? SharingPolicy::account_admins
                                           : SharingPolicy::all_users;
}

TokenUse use_of(InputView type) {
  return type.text() == "RUNTIME_TOKEN" ? TokenUse::runtime : TokenUse::user;
}

// Returns the user. Refuses the runtime itself, whose token is configured elsewhere.
Result<Actor> person(Call& call) {
  auto actor = actor_of(call);
  if (actor.user_id.empty()) {
    return fail(ErrorCode::invalid_argument,
                "the runtime itself cannot register a Git token; use the API key of a user");
  }
  return actor;
}

}  // namespace

Actor actor_of(Call& call) {
  const auto& user = call.context<Caller>().user;
  if (!user) return {};
  return {.user_id = user->id, .account_id = user->account_id, .is_admin = user->is_admin};
}

Error shown(Error error) {
  const bool is_about_git = error.subcode.starts_with("GIT_");
  if (is_about_git) {
    if (error.http_status == 401 || error.http_status == 403) error.http_status = 0;
    if (error.code == ErrorCode::unauthenticated || error.code == ErrorCode::forbidden) {
      error.code = ErrorCode::invalid_argument;
    }
    return error;
  }
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
    case ErrorCode::too_large:
      return error;
    case ErrorCode::conflict:
      if (error.http_status == 0) return error;
      [[fallthrough]];
    default:
      break;
  }
  // These are the runtime's own errors: with its cluster, or while it is not registered yet.
  static const Log log("git-integrations");
  log.warning("an operation on Git integrations failed",
              {{"code", to_string(error.code)}, {"reason", error.message}});
  return Error{.code = ErrorCode::unavailable,
               .message =
                   "the runtime cannot read or write its Git integrations now; try again "
                   "later, or see its log"};
}

Task<Result<std::vector<Integration>>> git_integrations(GitIntegrations& git, Call& call) {
  co_return shown(co_await git.list(actor_of(call), call.deadline()));
}

Task<Result<std::optional<Integration>>> git_integration(GitIntegrations& git, Call& call) {
  co_return shown(co_await git.get(actor_of(call), text_of(call["name"]), call.deadline()));
}

Task<Result<Integration>> add_git_integration(GitIntegrations& git, Call& call) {
  const auto args = call["args"];
  co_return shown(co_await git.add(actor_of(call),
                                   {.name = text_of(args["name"]),
                                    .provider = text_of(args["provider"]),
                                    .api_url = text_of(args["apiUrl"]),
                                    .sharing = sharing_of(args["sharingPolicy"])},
                                   call.deadline()));
}

Task<Result<Integration>> edit_git_integration(GitIntegrations& git, Call& call) {
  const auto args = call["args"];
  co_return shown(co_await git.edit(actor_of(call), text_of(args["name"]), text_of(args["apiUrl"]),
                                    sharing_of(args["sharingPolicy"]), call.deadline()));
}

Task<Result<void>> remove_git_integration(GitIntegrations& git, Call& call) {
  co_return shown(co_await git.remove(actor_of(call), text_of(call["name"]), call.deadline()));
}

Task<Result<Integration>> register_to_git_integration(GitIntegrations& git, Call& call) {
  const auto actor = person(call);
  if (!actor) co_return std::unexpected(actor.error());
  const auto args = call["args"];
  if (use_of(args["tokenType"]) == TokenUse::runtime) {
    co_return fail(ErrorCode::unsupported,
                   "the token of the runtime is not registered with a Git integration; it is set "
                   "when the runtime is installed (GIT_PASSWORD)");
  }
  GitAccess access{Secret(text_of(args["token"])), text_of(args["username"])};
  co_return shown(co_await git.register_user(*actor, text_of(args["name"]), std::move(access),
                                             call.deadline()));
}

Task<Result<Integration>> deregister_from_git_integration(GitIntegrations& git, Call& call) {
  const auto actor = person(call);
  if (!actor) co_return std::unexpected(actor.error());
  co_return shown(co_await git.deregister_user(*actor, text_of(call["name"]), call.deadline()));
}

Task<Result<void>> validate_git_provider(GitIntegrations& git, Call& call) {
  const auto args = call["args"];
  GitAccess access{Secret(text_of(args["token"])), text_of(args["username"])};
  auto profile =
      co_await git.validate(actor_of(call), text_of(args["provider"]), text_of(args["apiUrl"]),
                            std::move(access), use_of(args["tokenType"]), call.deadline());
  if (!profile) co_return std::unexpected(shown(std::move(profile.error())));
  co_return Result<void>();
}

void add_git_integration_types(graphql::Resolvers& to) {
  to.type<Integration>(
      "GitIntegration",
      {
          {"name", &Integration::name},
          {"sharingPolicy",
           [](const Integration& integration) {
             return integration.sharing == SharingPolicy::account_admins ? "ACCOUNT_ADMINS"
                                                                         : "ALL_USERS_IN_ACCOUNT";
           }},
          {"provider",
           [](const Integration& integration) { return wire_name(integration.root.kind); }},
          {"apiUrl", [](const Integration& integration) { return integration.root.text(); }},
          {"registeredUsers",
           [](const Integration& integration) {
             std::vector<std::string> ids;
             for (const auto& user : integration.users) ids.push_back(user.user_id);
             return ids;
           }},
          {"users", &Integration::users},
      });
  to.type<UserToken>(
      "UserGitIntegration",
      {
          {"userId", &UserToken::user_id},
          {"isValid", [](const UserToken& token) { return token.state == TokenState::valid; }},
      });
}

}  // namespace gitops::app_proxy
