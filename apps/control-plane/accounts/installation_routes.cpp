#include "control-plane/accounts/installation_routes.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/log.hpp"
#include "common/http/url.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/invitations.hpp"
#include "control-plane/accounts/revocations.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using Json = nlohmann::json;

constexpr std::size_t kPage = 100;

std::optional<Error> installation_refusal(const Caller& caller) {
  if (caller.is_runtime() || !caller.is_system_admin) {
    return Error{.code = ErrorCode::forbidden,
                 .message = "Only an administrator of the installation may do this.",
                 .http_status = 403};
  }
  return key_change_refusal(caller);
}

Json account_json(const Account& account) {
  return {{"_id", account.id},
          {"id", account.id},
          {"name", account.name},
          {"admins", account.admins},
          {"features", Json::object()}};
}

Result<Json> user_json(Connection& connection, const User& user) {
  const auto accounts = accounts_of_user(connection, user.id);
  if (!accounts) return std::unexpected(accounts.error());
  Json list = Json::array();
  for (const auto& account : *accounts) {
    list.push_back({{"_id", account.id}, {"id", account.id}, {"name", account.name}});
  }
  Json roles = Json::array({"User"});
  if (user.is_system_admin) roles.push_back("Admin");
  return Json{{"_id", user.id},
              {"userName", user.name},
              {"email", user.email},
              {"status", user.is_disabled ? "disabled" : "active"},
              {"roles", std::move(roles)},
              {"account", std::move(list)}};
}

struct PendingUser {
  Invitation invitation;
  Account account;
};

// Returns the pending users of all accounts that `is_meant` accepts.
template <class IsMeant>
Result<std::vector<PendingUser>> pending_users(Connection& connection, const IsMeant& is_meant) {
  const auto accounts = list_accounts(connection);
  if (!accounts) return std::unexpected(accounts.error());
  std::vector<PendingUser> found;
  for (const auto& account : *accounts) {
    const auto invitations = list_invitations(connection, account.number);
    if (!invitations) return std::unexpected(invitations.error());
    for (const auto& invitation : *invitations) {
      if (is_meant(invitation)) found.push_back({.invitation = invitation, .account = account});
    }
  }
  return found;
}

Json pending_user_json(const PendingUser& pending) {
  return {{"_id", pending.invitation.user_id},
          {"userName", pending_user_name(pending.invitation)},
          {"email", pending.invitation.email},
          {"status", "pending"},
          {"roles", Json::array({"User"})},
          {"account", Json::array({Json{{"_id", pending.account.id},
                                        {"id", pending.account.id},
                                        {"name", pending.account.name}}})}};
}

// Returns the JSON of a user, or of a pending one.
Result<Json> user_of_id_json(Connection& connection, const std::string& id) {
  const auto user = user_of_id(connection, id);
  if (user) return user_json(connection, *user);
  if (user.error().code != ErrorCode::not_found) return std::unexpected(user.error());
  const auto pending =
      pending_users(connection, [&id](const Invitation& one) { return one.user_id == id; });
  if (!pending) return std::unexpected(pending.error());
  if (pending->empty()) return std::unexpected(user.error());
  return pending_user_json(pending->front());
}

// Withdraws the invitation of the pending user of this name, and returns the id of that user.
Result<std::string> withdraw(Connection& connection, const std::string& name) {
  const auto pending = pending_users(
      connection, [&name](const Invitation& one) { return pending_user_name(one) == name; });
  if (!pending) return std::unexpected(pending.error());
  if (pending->empty()) return fail(ErrorCode::not_found, "there is no user " + name);
  if (pending->size() > 1) {
    return fail(ErrorCode::conflict,
                "several pending users have this name: remove each of them from its account");
  }
  const auto& invitation = pending->front().invitation;
  if (auto revoked = revoke_invitation(connection, invitation.account, invitation.user_id);
      !revoked) {
    return std::unexpected(std::move(revoked.error()));
  }
  return invitation.user_id;
}

Task<http::Response> get_accounts(CallerRequest request) {
  if (const auto error = installation_refusal(*request.caller)) co_return api_error(*error);
  const auto query = request.exchange.query();
  auto name = http::query_parameter(query, "filter[name]");
  if (name.empty()) name = http::query_parameter(query, "filter%5Bname%5D");
  const auto accounts = co_await request.context.database.read(
      request.deadline, [](Connection& connection) { return list_accounts(connection); });
  if (!accounts) co_return api_error(accounts.error());
  Json list = Json::array();
  for (const auto& account : *accounts) {
    if (name.empty() || account.name == name) list.push_back(account_json(account));
  }
  co_return json_response(list);
}

Task<http::Response> get_account(CallerRequest request) {
  if (const auto error = installation_refusal(*request.caller)) co_return api_error(*error);
  const auto account = co_await request.context.database.read(
      request.deadline, [id = request.parameters.at("id")](Connection& connection) {
        return account_of_id(connection, id);
      });
  if (!account) co_return api_error(account.error());
  co_return json_response(account_json(*account));
}

Task<http::Response> add_account(CallerRequest request) {
  if (const auto error = installation_refusal(*request.caller)) co_return api_error(*error);
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  const auto name = string_at(*body, {"name"});
  request.audit_target = "name=" + name;
  const auto account = co_await request.context.database.write(
      request.deadline, [name, now = micros_at(wall_now())](Connection& connection) {
        return create_account(connection, name, now);
      });
  if (!account) co_return api_error(account.error());
  request.audit_target += " id=" + account->id;
  Log("accounts")
      .info("an account was created", {{"account", account->id}, {"by", request.caller->user_id}});
  co_return json_response(account_json(*account));
}

Task<http::Response> remove_account(CallerRequest request) {
  if (const auto error = installation_refusal(*request.caller)) co_return api_error(*error);
  co_return api_error(400, "An account and its data are not removed by a request.");
}

Task<http::Response> add_pending_user(CallerRequest request) {
  if (const auto error = installation_refusal(*request.caller)) co_return api_error(*error);
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  const auto& accounts = value_at(*body, {"account"});
  if (!accounts.is_array() || accounts.size() != 1 || !accounts[0].is_string()) {
    co_return api_error(400, "account is a list with the id of one account.");
  }
  const InvitationRequest wanted{.email = string_at(*body, {"email"}),
                                 .name = string_at(*body, {"userName"})};
  const auto id = accounts[0].get<std::string>();
  request.audit_target = "email=" + wanted.email + " account=" + id;
  const auto issued = co_await request.context.database.write(
      request.deadline,
      [id, wanted,
       now = micros_at(wall_now())](Connection& connection) -> Result<IssuedInvitation> {
        const auto account = account_of_id(connection, id);
        if (!account) return std::unexpected(account.error());
        return invite(connection, account->number, wanted, now);
      });
  if (!issued) co_return api_error(issued.error());
  const auto& invitation = issued->invitation;
  Log("accounts")
      .info("a user was invited", {{"user", invitation.user_id}, {"by", request.caller->user_id}});
  co_return json_response(
      Json::object({{"_id", invitation.user_id},
                    {"userName", pending_user_name(invitation)},
                    {"email", invitation.email},
                    {"status", "pending"},
                    {"account", Json::array({Json{{"_id", id}}})},
                    {"inviteUrl", invitation_link(request.context.public_url, issued->token)}}));
}

// A number in the query; `otherwise` when it is absent or not a positive number.
std::size_t number_of(std::string_view query, std::string_view name, std::size_t otherwise) {
  const auto text = http::query_parameter(query, name);
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0 ? number
                                                                                : otherwise;
}

Task<http::Response> get_users(CallerRequest request) {
  if (const auto error = installation_refusal(*request.caller)) co_return api_error(*error);
  const auto query = request.exchange.query();
  const auto limit = std::min(number_of(query, "limit", kPage), kPage);
  const auto page = std::min(number_of(query, "page", 1), std::size_t{1'000'000});
  const auto list = co_await request.context.database.read(
      request.deadline, [limit, page](Connection& connection) -> Result<Json> {
        const auto users = list_users(connection);
        if (!users) return std::unexpected(users.error());
        Json docs = Json::array();
        for (auto at = (page - 1) * limit; at < users->size() && docs.size() < limit; ++at) {
          auto json = user_json(connection, (*users)[at]);
          if (!json) return json;
          docs.push_back(std::move(*json));
        }
        return docs;
      });
  if (!list) co_return api_error(list.error());
  co_return json_response(Json::object({{"docs", *list}}));
}

Task<http::Response> get_one_user(CallerRequest request) {
  if (const auto error = installation_refusal(*request.caller)) co_return api_error(*error);
  const auto json = co_await request.context.database.read(
      request.deadline, [id = request.parameters.at("id")](Connection& connection) {
        return user_of_id_json(connection, id);
      });
  if (!json) co_return api_error(json.error());
  co_return json_response(*json);
}

Task<http::Response> remove_one_user(CallerRequest request) {
  if (const auto error = installation_refusal(*request.caller)) co_return api_error(*error);
  const auto removed = co_await request.context.database.write(
      request.deadline,
      [name = request.parameters.at("name"),
       now = micros_at(wall_now())](Connection& connection) -> Result<std::string> {
        const auto user = user_of_name(connection, name);
        if (!user && user.error().code == ErrorCode::not_found) return withdraw(connection, name);
        if (!user) return std::unexpected(user.error());
        if (auto gone = remove_user(connection, user->id); !gone) {
          return std::unexpected(std::move(gone.error()));
        }
        if (auto added = add_revocation(
                connection, {.account = user->active_account, .subject = user->id, .runtime = {}},
                now);
            !added) {
          return std::unexpected(std::move(added.error()));
        }
        return user->id;
      });
  // Terraform takes these words for a user that is gone already.
  if (!removed && removed.error().code == ErrorCode::not_found) {
    co_return api_error(404, "User does not exist");
  }
  if (!removed) co_return api_error(removed.error());
  request.audit_target = "id=" + *removed;
  request.context.authenticator.forget(*removed);
  Log("accounts").info("a user was removed", {{"user", *removed}, {"by", request.caller->user_id}});
  co_return json_response(Json::object({{"_id", *removed}}));
}

// Refuses to begin a session as another user: the audit log would name the wrong person.
Task<http::Response> log_in_as(CallerRequest request) {
  if (const auto error = installation_refusal(*request.caller)) co_return api_error(*error);
  co_return api_error(400,
                      "Nobody acts as another user on this server: use a service account and its "
                      "keys instead.");
}

}  // namespace

void add_installation_routes(const UserContext& context, std::vector<http::Route>& routes) {
  CallerRoutes list(context, routes);
  list.add("GET", "/api/admin/accounts", get_accounts);
  list.add("POST", "/api/admin/accounts", add_account);
  list.add("POST", "/api/admin/accounts/addpendinguser", add_pending_user);
  list.add("GET", "/api/admin/accounts/{id}", get_account);
  list.add("DELETE", "/api/admin/accounts/{id}", remove_account);
  list.add("GET", "/api/admin/user", get_users);
  list.add("GET", "/api/admin/user/id/{id}", get_one_user);
  list.add("DELETE", "/api/admin/user/{name}", remove_one_user);
  list.add("GET", "/api/admin/user/loginAsUser", log_in_as);
}

}  // namespace gitops::control_plane_server
