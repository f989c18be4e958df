#include "control-plane/accounts/user_routes.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/log.hpp"
#include "common/http/url.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/audit_routes.hpp"
#include "control-plane/accounts/caller_routes.hpp"
#include "control-plane/accounts/installation_routes.hpp"
#include "control-plane/accounts/invitation_routes.hpp"
#include "control-plane/accounts/key_routes.hpp"
#include "control-plane/accounts/member_routes.hpp"
#include "control-plane/accounts/password_routes.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/service_account_routes.hpp"
#include "control-plane/accounts/sessions.hpp"
#include "control-plane/accounts/team_routes.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

// Returns the JSON of a user. `accounts` contains the active account.
Json user_json(const Caller& caller, const std::vector<Account>& accounts) {
  Json list = Json::array();
  for (const auto& account : accounts) {
    list.push_back({{"_id", account.id},
                    {"id", account.id},
                    {"name", account.name},
                    {"admins", account.admins},
                    {"features", {{"gitopsPlanEnforcement", false}}}});
  }
  Json roles = Json::array({"User"});
  if (caller.is_system_admin) roles.push_back("Admin");
  return {{"_id", caller.user_id},      {"id", caller.user_id},
          {"userName", caller.name},    {"email", caller.email},
          {"account", std::move(list)}, {"activeAccountName", caller.account->name},
          {"roles", std::move(roles)},  {"user_data", {{"image", ""}}}};
}

// Returns the accounts of a user. They include the caller's own, even when the user has just left it.
Task<Result<std::vector<Account>>> accounts_of(const CallerRequest& request) {
  auto accounts = co_await request.context.database.read(
      request.deadline, [id = request.caller->user_id](store::Connection& connection) {
        return accounts_of_user(connection, id);
      });
  if (!accounts) co_return accounts;
  for (const auto& account : *accounts) {
    if (account.number == request.caller->account->number) co_return accounts;
  }
  accounts->push_back(*request.caller->account);
  // Administrators of an account are users. A service account sees itself among them.
  if (request.caller->is_service_account && request.caller->is_admin) {
    accounts->back().admins.push_back(request.caller->user_id);
  }
  co_return accounts;
}

Task<http::Response> get_user(CallerRequest request) {
  if (request.caller->is_runtime()) co_return no_user();
  const auto accounts = co_await accounts_of(request);
  if (!accounts) co_return api_error(accounts.error());
  co_return json_response(user_json(*request.caller, *accounts));
}

std::unexpected<Error> session_has_ended() {
  return std::unexpected(Error{.code = ErrorCode::unauthenticated,
                               .message = "The session has ended: log in again.",
                               .http_status = 401});
}

// Makes another account the active one. The session continues under a new token.
Task<http::Response> change_account(CallerRequest request) {
  if (request.caller->is_runtime()) co_return no_user();
  const auto sent =
      sent_token(request.exchange.request().headers, request.context.authenticator.cookie());
  if (parse_api_key(sent.token.reveal())) {
    co_return api_error(403, "An API key belongs to one account: log in to change the account.");
  }
  struct Changed {
    Account account;
    Secret token;
  };
  auto changed = co_await request.context.database.write(
      request.deadline,
      [user = request.caller->user_id, wanted = request.parameters.at("id"),
       hash = session_hash(sent.token),
       now = micros_at(wall_now())](store::Connection& connection) -> Result<Changed> {
        const auto absent = [&wanted] {
          return fail(ErrorCode::not_found, "there is no account " + wanted);
        };
        auto account = account_of_id(connection, wanted);
        if (!account) return std::unexpected(std::move(account.error()));
        const auto member = find_member(connection, account->number, user);
        if (!member) return std::unexpected(member.error());
        // An account of others looks like one that does not exist.
        if (!*member) return absent();
        if (auto set = set_active_account(connection, user, account->number); !set) {
          return std::unexpected(std::move(set.error()));
        }
        auto token = renew_session(connection, hash, now);
        if (!token) return std::unexpected(std::move(token.error()));
        if (!*token) return session_has_ended();
        // Other processes ask again for the user's account, too.
        if (auto added = add_revocation(
                connection, {.account = account->number, .subject = user, .runtime = {}}, now);
            !added) {
          return std::unexpected(std::move(added.error()));
        }
        return Changed{.account = std::move(*account), .token = std::move(**token)};
      });
  if (!changed) co_return api_error(changed.error());
  request.context.authenticator.forget(request.caller->user_id);
  auto caller = std::make_shared<Caller>(*request.caller);
  caller->account = std::make_shared<const Account>(std::move(changed->account));
  request.caller = std::move(caller);
  const auto accounts = co_await accounts_of(request);
  if (!accounts) co_return api_error(accounts.error());
  auto response = json_response(Json::object(
      {{"accessToken", changed->token.reveal()}, {"user", user_json(*request.caller, *accounts)}}));
  if (sent.kind == SentToken::Kind::cookie) {
    response.headers.add("Set-Cookie",
                         session_cookie(request.context.authenticator.cookie(), changed->token));
  }
  co_return response;
}

// `entry` gets the name that was given.
Task<http::Response> log_in(const UserRouteContext& context, http::Exchange& exchange,
                            AuditEntry& entry) {
  const auto& headers = exchange.request().headers;
  // A form of another site cannot send this type, so it cannot log a user in.
  if (!is_json_request(headers)) co_return api_error(415, "The body is not application/json.");
  if (is_from_other_site(headers, context.own_origins)) {
    co_return api_error(403, "Pages of other sites cannot log in.");
  }
  auto body = co_await body_object(exchange);
  if (!body) co_return body.error();
  entry.target = "name=" + string_at(*body, {"name"});
  const auto outcome = co_await context.login.log_in(
      string_at(*body, {"name"}), Secret(string_at(*body, {"password"})),
      client_of(context, exchange), deadline_after(kUserRequestLimit));
  if (!outcome) co_return api_error(outcome.error());
  entry.caller_id = outcome->user_id;
  auto response = json_response(Json::object({{"_id", outcome->user_id}}));
  response.headers.add("Set-Cookie",
                       session_cookie(context.authenticator.cookie(), outcome->token));
  co_return response;
}

// Ends a session, in this process and in others.
Result<void> revoke_session(store::Connection& connection, const std::string& hash, Micros now) {
  const auto session = find_session(connection, hash);
  if (!session) return std::unexpected(session.error());
  if (!*session) return {};
  const auto user = user_of_id(connection, (*session)->user_id);
  if (!user) return std::unexpected(user.error());
  if (auto ended = end_session(connection, hash); !ended) return ended;
  return add_revocation(
      connection, {.account = user->active_account, .subject = session_id(hash), .runtime = {}},
      now);
}

// Ends the session of the token in the request, if there is one. Else nothing is changed, which
// anybody may do as often as it likes: there is no entry then.
Task<http::Response> log_out(const UserRouteContext& context, http::Exchange& exchange,
                             AuditEntry& entry) {
  const auto& headers = exchange.request().headers;
  if (is_from_other_site(headers, context.own_origins)) {
    co_return api_error(403, "Pages of other sites cannot log out.");
  }
  const auto form = context.authenticator.cookie();
  const auto sent = sent_token(headers, form);
  Json body = Json::object();
  bool has_ended = false;
  if (!sent.token.empty() && !parse_api_key(sent.token.reveal())) {
    using Provider = std::optional<std::string>;  // of the session; nothing: there is none
    const auto hash = session_hash(sent.token);
    const auto ended = co_await context.database.write(
        deadline_after(kUserRequestLimit),
        [hash, now = micros_at(wall_now())](store::Connection& connection) -> Result<Provider> {
          const auto session = find_session(connection, hash);
          if (!session) return std::unexpected(session.error());
          if (!*session) return Provider();
          if (auto done = revoke_session(connection, hash, now); !done) {
            return std::unexpected(std::move(done.error()));
          }
          return Provider((*session)->provider);
        });
    if (!ended) co_return api_error(ended.error());
    has_ended = ended->has_value();
    if (has_ended) context.authenticator.forget(session_id(hash));
    if (has_ended && !(*ended)->empty() && context.end_session_url) {
      auto url = co_await context.end_session_url(**ended);
      if (!url.empty()) body["endSession"] = std::move(url);
    }
  }
  if (!has_ended) entry.action.clear();
  auto response = json_response(body);
  response.headers.add("Set-Cookie", ended_session_cookie(form));
  co_return response;
}

// A handler that clears the action of its entry has nothing to tell the audit log.
using OpenHandler = Task<http::Response> (*)(const UserRouteContext&, http::Exchange&, AuditEntry&);

http::RouteHandler for_everybody(UserContext context, OpenHandler handler) {
  return [context = std::move(context), handler](http::Exchange& exchange,
                                                 const http::RouteParameters&) -> Task<> {
    auto entry = audit_entry(nullptr, client_of(*context, exchange),
                             exchange.request().method + " " + std::string(exchange.path()));
    auto response = co_await handler(*context, exchange, entry);
    if (!entry.action.empty()) {
      co_await audit_response(*context, exchange, response, std::move(entry));
    }
    std::ignore = co_await exchange.reply(std::move(response));
  };
}

int status_of(const Error& error) {
  if (error.http_status >= 400) return error.http_status;
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_data:
      return 400;
    case ErrorCode::unauthenticated:
      return 401;
    case ErrorCode::forbidden:
      return 403;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::conflict:
      return 409;
    case ErrorCode::too_large:
      return 413;
    case ErrorCode::too_many_requests:
      return 429;
    case ErrorCode::internal:
      return 500;
    default:
      return 503;
  }
}

http::Response error_response(int status, ErrorCode code, std::string_view message) {
  Json json = Json::object({{"message", message}, {"code", to_string(code)}});
  if (status == 404) json["statusCode"] = 404;
  auto response = json_response(json, status);
  if (status == 401) response.headers.add("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace

http::Response api_error(int status, std::string_view message) {
  return error_response(status, error_code_of_status(status), message);
}

http::Response api_error(const Error& error) {
  const int status = status_of(error);
  const bool is_own_failure = status >= 500 && error.http_status == 0;
  if (is_own_failure) {
    Log("accounts").warning("a request of a user failed", {{"error", error.message}});
  }
  auto response = is_own_failure
                      ? api_error(status, "The request cannot be served now. Try again later.")
                      : error_response(status, error.code, error.message);
  auto wait = std::chrono::ceil<std::chrono::seconds>(error.retry_after);
  if (is_own_failure) wait = std::max(wait, std::chrono::seconds(5));
  if (wait.count() > 0) response.headers.add("Retry-After", std::to_string(wait.count()));
  return response;
}

std::vector<http::Route> user_routes(UserRouteContext given) {
  const auto context = std::make_shared<const UserRouteContext>(std::move(given));
  std::vector<http::Route> routes;
  const auto add = [&routes](std::string method, std::string pattern, http::RouteHandler handler) {
    // The handlers authenticate the caller themselves, since they need it.
    routes.push_back({.method = std::move(method),
                      .pattern = std::move(pattern),
                      .guard = http::open_to_all(),
                      .handler = std::move(handler)});
  };
  add("GET", "/api/ping",
      http::answer_with([](const auto&, const auto&) { return http::text_response(200, "pong"); }));
  add("GET", "/api/user", for_callers(context, get_user));
  add("POST", "/api/user/changeaccount/{id}", for_callers(context, change_account));
  add("POST", "/console/api/v1/login", for_everybody(context, log_in));
  add("POST", "/console/api/v1/logout", for_everybody(context, log_out));
  add_key_routes(context, routes);
  add_password_routes(context, routes);
  add_service_account_routes(context, routes);
  add_team_routes(context, routes);
  add_member_routes(context, routes);
  add_invitation_routes(context, routes);
  add_installation_routes(context, routes);
  add_audit_routes(context, routes);
  // The other paths of the platform's REST belong to products that this server does not have.
  for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    add(method, "/api/{rest...}",
        http::answer_with([](const http::Exchange& exchange, const auto&) {
          return api_error(404, "There is no " + exchange.request().method + " " +
                                    std::string(exchange.path()) + " on this server.");
        }));
  }
  return routes;
}

}  // namespace gitops::control_plane_server
