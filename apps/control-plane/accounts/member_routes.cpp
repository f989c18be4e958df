#include "control-plane/accounts/member_routes.hpp"

#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/log.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/invitations.hpp"
#include "control-plane/accounts/revocations.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using Json = nlohmann::json;

Json member_json(const Member& member) {
  return {{"_id", member.user.id},
          {"userName", member.user.name},
          {"email", member.user.email},
          {"status", member.user.is_disabled ? "disabled" : "active"},
          {"isAdmin", member.is_admin}};
}

Json pending_json(const Invitation& invitation) {
  return {{"_id", invitation.user_id},      {"userName", pending_user_name(invitation)},
          {"email", invitation.email},      {"status", "pending"},
          {"isAdmin", invitation.is_admin}, {"expires", time_text(invitation.expires_at)}};
}

Json invited_json(const CallerRequest& request, const IssuedInvitation& issued) {
  auto json = pending_json(issued.invitation);
  json["inviteUrl"] = invitation_link(request.context.public_url, issued.token);
  return json;
}

// Returns the number of the account in the path.
Result<std::int64_t> managed_account(Connection& connection, const Caller& caller,
                                     const std::string& id) {
  if (!caller.is_system_admin || id == caller.account->id) return account_number(caller, id);
  const auto account = account_of_id(connection, id);
  if (!account) return std::unexpected(account.error());
  return account->number;
}

// Lets every process read again who the user is, and who administers the account.
Result<void> add_revocations(Connection& connection, std::int64_t account,
                             const std::string& user_id, Micros now) {
  if (auto added =
          add_revocation(connection, {.account = account, .subject = user_id, .runtime = {}}, now);
      !added) {
    return added;
  }
  return add_account_change(connection, account, now);
}

// The parts of a request that its transaction needs.
struct Target {
  CallerPtr caller;
  std::string account;  // id
  std::string user;     // id; empty for adduser
  Micros now = 0;
};
Target target_of(const CallerRequest& request, bool has_user = true) {
  return {.caller = request.caller,
          .account = request.parameters.at("id"),
          .user = has_user ? request.parameters.at("user") : std::string(),
          .now = micros_at(wall_now())};
}

void forget(const CallerRequest& request, const Target& target) {
  request.context.authenticator.forget(target.user);
  request.context.authenticator.forget(target.account);
}

// The name and the address in a body; nothing when it has no address.
std::optional<InvitationRequest> wanted_user(const Json& body) {
  InvitationRequest wanted{.email = string_at(body, {"userDetails"})};
  if (wanted.email.empty()) wanted.email = string_at(body, {"email"});
  wanted.name = string_at(body, {"userName"});
  if (wanted.email.empty()) return {};
  return wanted;
}

constexpr const char* kWanted = "A user has userDetails (a mail address), or userName and email.";

Task<http::Response> get_members(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto list = co_await request.context.database.read(
      request.deadline,
      [target = target_of(request, false)](Connection& connection) -> Result<Json> {
        const auto account = managed_account(connection, *target.caller, target.account);
        if (!account) return std::unexpected(account.error());
        const auto members = list_members(connection, *account);
        if (!members) return std::unexpected(members.error());
        const auto pending = list_invitations(connection, *account);
        if (!pending) return std::unexpected(pending.error());
        Json all = Json::array();
        for (const auto& member : *members) all.push_back(member_json(member));
        for (const auto& invitation : *pending) all.push_back(pending_json(invitation));
        return all;
      });
  if (!list) co_return api_error(list.error());
  co_return json_response(*list);
}

// Outcome of an invitation: a member that has the address already, or a pending user.
struct Invited {
  std::optional<Member> member;
  IssuedInvitation issued = {};
};

Result<Invited> invite_or_find(Connection& connection, const Target& target,
                               const InvitationRequest& wanted) {
  const auto account = managed_account(connection, *target.caller, target.account);
  if (!account) return std::unexpected(account.error());
  const auto members = list_members(connection, *account);
  if (!members) return std::unexpected(members.error());
  for (const auto& member : *members) {
    if (http::equal_ignoring_case(member.user.email, wanted.email)) {
      return Invited{.member = member};
    }
  }
  auto issued = invite(connection, *account, wanted, target.now);
  if (!issued) return std::unexpected(std::move(issued.error()));
  return Invited{.member = std::nullopt, .issued = std::move(*issued)};
}

Task<http::Response> add_user(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  const auto wanted = wanted_user(*body);
  if (!wanted) co_return api_error(400, kWanted);
  request.audit_target = "email=" + wanted->email;
  const auto invited = co_await request.context.database.write(
      request.deadline,
      [target = target_of(request, false), wanted = *wanted](Connection& connection) {
        return invite_or_find(connection, target, wanted);
      });
  if (!invited) co_return api_error(invited.error());
  if (invited->member) co_return json_response(member_json(*invited->member));
  const auto& user = invited->issued.invitation.user_id;
  request.audit_target += " id=" + user;
  Log("accounts").info("a user was invited", {{"user", user}, {"by", request.caller->user_id}});
  co_return json_response(invited_json(request, invited->issued));
}

Result<void> remove_or_withdraw(Connection& connection, const Target& target) {
  const auto account = managed_account(connection, *target.caller, target.account);
  if (!account) return std::unexpected(account.error());
  const auto member = find_member(connection, *account, target.user);
  if (!member) return std::unexpected(member.error());
  if (!*member) return revoke_invitation(connection, *account, target.user);
  if (auto added = add_revocations(connection, *account, target.user, target.now); !added) {
    return added;
  }
  const auto accounts = accounts_of_user(connection, target.user);
  if (!accounts) return std::unexpected(accounts.error());
  // remove_user() locks the installation before its accounts, so none is locked until then. Otherwise two removals could
  // wait for each other.
  if (accounts->size() == 1 && !(*member)->user.is_system_admin) {
    return remove_user(connection, target.user);
  }
  if (auto kept = keep_administrator(connection, *account, target.user); !kept) return kept;
  return remove_member(connection, *account, target.user);
}

Task<http::Response> remove(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto target = target_of(request);
  const auto removed = co_await request.context.database.write(
      request.deadline,
      [target](Connection& connection) { return remove_or_withdraw(connection, target); });
  if (!removed) co_return api_error(removed.error());
  forget(request, target);
  Log("accounts")
      .info("a user was removed from an account",
            {{"user", target.user}, {"account", target.account}, {"by", request.caller->user_id}});
  co_return json_response(Json::object({{"_id", target.user}}));
}

// Returns the changed user, and the link when it is a pending one.
Result<Invited> update(Connection& connection, const Target& target, InvitationRequest wanted) {
  const auto account = managed_account(connection, *target.caller, target.account);
  if (!account) return std::unexpected(account.error());
  const auto pending = invitation_of_user(connection, *account, target.user);
  if (!pending) return std::unexpected(pending.error());
  if (*pending) {
    wanted.is_admin = (*pending)->is_admin;
    auto issued = change_invitation(connection, *account, target.user, wanted, target.now);
    if (!issued) return std::unexpected(std::move(issued.error()));
    return Invited{.member = std::nullopt, .issued = std::move(*issued)};
  }
  const auto member = find_member(connection, *account, target.user);
  if (!member) return std::unexpected(member.error());
  if (!*member) return fail(ErrorCode::not_found, "there is no user " + target.user);
  const auto user = managed_user(connection, *target.caller, target.user);
  if (!user) return std::unexpected(user.error());
  if (auto mistake = email_mistake(wanted.email); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  const auto& name = wanted.name.empty() ? user->name : wanted.name;
  if (auto set = set_user_details(connection, target.user, name, wanted.email); !set) {
    return std::unexpected(std::move(set.error()));
  }
  if (auto added = add_revocations(connection, *account, target.user, target.now); !added) {
    return std::unexpected(std::move(added.error()));
  }
  auto changed = find_member(connection, *account, target.user);
  if (!changed) return std::unexpected(std::move(changed.error()));
  return Invited{.member = std::move(*changed)};
}

Task<http::Response> update_user(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  const auto wanted = wanted_user(*body);
  if (!wanted) co_return api_error(400, kWanted);
  request.audit_target = "email=" + wanted->email;
  const auto target = target_of(request);
  const auto changed = co_await request.context.database.write(
      request.deadline, [target, wanted = *wanted](Connection& connection) {
        return update(connection, target, wanted);
      });
  if (!changed) co_return api_error(changed.error());
  forget(request, target);
  Log("accounts")
      .info("a user was changed", {{"user", target.user}, {"by", request.caller->user_id}});
  if (changed->member) co_return json_response(member_json(*changed->member));
  co_return json_response(invited_json(request, changed->issued));
}

Result<void> set_admin(Connection& connection, const Target& target, bool is_admin) {
  const auto account = managed_account(connection, *target.caller, target.account);
  if (!account) return std::unexpected(account.error());
  const auto member = find_member(connection, *account, target.user);
  if (!member) return std::unexpected(member.error());
  if (!*member) return set_invitation_admin(connection, *account, target.user, is_admin);
  if (!is_admin) {
    if (auto kept = keep_administrator(connection, *account, target.user); !kept) return kept;
  }
  if (auto put = put_member(connection, *account, target.user, is_admin); !put) return put;
  return add_revocations(connection, *account, target.user, target.now);
}

Task<http::Response> change_admin(CallerRequest request, bool is_admin) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto target = target_of(request);
  request.audit_target = is_admin ? "admin=true" : "admin=false";
  const auto changed = co_await request.context.database.write(
      request.deadline, [target, is_admin](Connection& connection) {
        return set_admin(connection, target, is_admin);
      });
  if (!changed) co_return api_error(changed.error());
  forget(request, target);
  Log("accounts")
      .info(is_admin ? "a user became an administrator" : "a user is no administrator any more",
            {{"user", target.user}, {"account", target.account}, {"by", request.caller->user_id}});
  co_return json_response(Json::object({{"_id", target.user}, {"isAdmin", is_admin}}));
}

}  // namespace

void add_member_routes(const UserContext& context, std::vector<http::Route>& routes) {
  CallerRoutes list(context, routes);
  const auto setting = [](bool is_admin) -> CallerHandler {
    return [is_admin](CallerRequest request) { return change_admin(std::move(request), is_admin); };
  };
  list.add("GET", "/api/accounts/{id}/users", get_members);
  list.add("POST", "/api/accounts/{id}/adduser", add_user);
  list.add("DELETE", "/api/accounts/{id}/{user}", remove);
  list.add("POST", "/api/accounts/{id}/{user}/updateuser", update_user);
  list.add("POST", "/api/accounts/{id}/{user}/admin", setting(true));
  list.add("DELETE", "/api/accounts/{id}/{user}/admin", setting(false));
}

}  // namespace gitops::control_plane_server
