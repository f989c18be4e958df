#include "control-plane/accounts/password_routes.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/log.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/passwords.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/sessions.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

// Ends all sessions of a user, in this process and in others.
Result<void> end_sessions(store::Connection& connection, std::int64_t account,
                          const std::string& user, Micros now) {
  if (auto ended = end_sessions_of(connection, user); !ended) return ended;
  return add_revocation(connection, {.account = account, .subject = user, .runtime = {}}, now);
}

Task<http::Response> change_own_password(CallerRequest request) {
  if (request.caller->is_runtime()) co_return no_user();
  const auto sent =
      sent_token(request.exchange.request().headers, request.context.authenticator.cookie());
  if (parse_api_key(sent.token.reveal())) {
    co_return api_error(403, "An API key cannot change a password: log in first.");
  }
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  auto changed = co_await request.context.login.change_password(
      {.user_id = request.caller->user_id,
       .account = request.caller->account->number,
       .password = Secret(string_at(*body, {"password"})),
       .new_password = Secret(string_at(*body, {"newPassword"}))},
      client_of(request.context, request.exchange), request.deadline);
  if (!changed) co_return api_error(changed.error());
  request.context.authenticator.forget(request.caller->user_id);
  auto response = json_response(Json::object());
  response.headers.add("Set-Cookie",
                       session_cookie(request.context.authenticator.cookie(), *changed));
  co_return response;
}

Task<http::Response> get_users(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto members = co_await request.context.database.read(
      request.deadline, [account = request.caller->account->number](store::Connection& connection) {
        return list_members(connection, account);
      });
  if (!members) co_return api_error(members.error());
  Json list = Json::array();
  for (const auto& member : *members) {
    const auto& user = member.user;
    Json item{{"_id", user.id},
              {"userName", user.name},
              {"email", user.email},
              {"isAdmin", member.is_admin},
              {"disabled", user.is_disabled}};
    if (user.seen_at != 0) {
      item["lastLogin"] =
          format_rfc3339_millis(WallTime(std::chrono::milliseconds(user.seen_at / 1'000)));
    }
    list.push_back(std::move(item));
  }
  co_return json_response(list);
}

Task<http::Response> reset_password(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  const bool is_given = body->contains("password");
  const Secret password = is_given ? Secret(string_at(*body, {"password"})) : generated_password();
  auto hash = co_await request.context.login.hash_new(password, request.deadline);
  if (!hash) co_return api_error(hash.error());
  const auto id = request.parameters.at("id");
  const auto user = co_await request.context.database.write(
      request.deadline,
      [caller = request.caller, id, hash = std::move(*hash),
       now = micros_at(wall_now())](store::Connection& connection) -> Result<User> {
        auto managed = managed_user(connection, *caller, id);
        if (!managed) return managed;
        if (auto set = set_password(connection, id, hash); !set) {
          return std::unexpected(std::move(set.error()));
        }
        if (auto ended = end_sessions(connection, caller->account->number, id, now); !ended) {
          return std::unexpected(std::move(ended.error()));
        }
        return managed;
      });
  if (!user) co_return api_error(user.error());
  request.context.authenticator.forget(id);
  Log("accounts").info("a password was reset", {{"user", id}, {"by", request.caller->user_id}});
  Json response{{"_id", id}};
  if (!is_given) response["password"] = password.reveal();
  co_return json_response(response);
}

Task<http::Response> update_user(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  const auto wanted = body->find("disabled");
  if (wanted == body->end() || !wanted->is_boolean()) {
    co_return api_error(400, "disabled is true or false.");
  }
  const auto id = request.parameters.at("id");
  if (id == request.caller->user_id) co_return api_error(400, "You cannot disable yourself.");
  const bool is_disabled = wanted->get<bool>();
  request.audit_target = is_disabled ? "disabled=true" : "disabled=false";
  const auto user = co_await request.context.database.write(
      request.deadline,
      [caller = request.caller, id, is_disabled,
       now = micros_at(wall_now())](store::Connection& connection) -> Result<User> {
        auto managed = managed_user(connection, *caller, id);
        if (!managed) return managed;
        if (is_disabled) {
          if (auto kept = keep_administrators(connection, id); !kept) {
            return std::unexpected(std::move(kept.error()));
          }
        }
        if (auto set = set_disabled(connection, id, is_disabled); !set) {
          return std::unexpected(std::move(set.error()));
        }
        if (auto added = add_revocation(
                connection, {.account = caller->account->number, .subject = id, .runtime = {}},
                now);
            !added) {
          return std::unexpected(std::move(added.error()));
        }
        return managed;
      });
  if (!user) co_return api_error(user.error());
  request.context.authenticator.forget(id);
  Log("accounts")
      .info(is_disabled ? "a user was disabled" : "a user was enabled",
            {{"user", id}, {"by", request.caller->user_id}});
  co_return json_response(Json::object({{"_id", id}, {"disabled", is_disabled}}));
}

}  // namespace

void add_password_routes(const UserContext& context, std::vector<http::Route>& routes) {
  CallerRoutes list(context, routes);
  list.add("POST", "/console/api/v1/password", change_own_password);
  list.add("GET", "/console/api/v1/users", get_users);
  list.add("PATCH", "/console/api/v1/users/{id}", update_user);
  list.add("PUT", "/console/api/v1/users/{id}/password", reset_password);
}

}  // namespace gitops::control_plane_server
