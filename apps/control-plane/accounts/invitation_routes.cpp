#include "control-plane/accounts/invitation_routes.hpp"

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/attempts.hpp"
#include "common/core/json_value.hpp"
#include "common/core/log.hpp"
#include "common/http/url.hpp"
#include "common/net/address_list.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/audit_routes.hpp"
#include "control-plane/accounts/invitations.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/sessions.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using Json = nlohmann::json;

constexpr std::size_t kBurst = 20;
constexpr std::chrono::seconds kPeriod{3};
constexpr std::size_t kMaxToken = 128;

// The attempts of addresses, for both routes.
using AttemptsPtr = std::shared_ptr<Attempts>;

std::optional<Error> take_attempt(Attempts& attempts, const std::string& peer) {
  const auto now = Clock::now();
  const auto network = net::client_network(peer);
  if (const auto wait = attempts.wait_of(network, now); wait > Clock::duration::zero()) {
    return Error{.code = ErrorCode::too_many_requests,
                 .message = "Too many attempts with invitations. Try again later.",
                 .retry_after = std::chrono::ceil<std::chrono::seconds>(wait),
                 .http_status = 429};
  }
  attempts.spend(network, now);
  return std::nullopt;
}

struct Shown {
  Invitation invitation;
  std::string account;
};
Result<Shown> shown(Connection& connection, const Secret& token, Micros now) {
  auto invitation = find_invitation(connection, token, now);
  if (!invitation) return std::unexpected(std::move(invitation.error()));
  auto account = account_of_number(connection, invitation->account);
  if (!account) return std::unexpected(std::move(account.error()));
  return Shown{.invitation = std::move(*invitation), .account = std::move(account->name)};
}

Task<Result<Shown>> look_up(const UserRouteContext& context, Secret token, Deadline deadline) {
  if (token.reveal().size() > kMaxToken) token = Secret();
  co_return co_await context.database.read(
      deadline, [token, now = micros_at(wall_now())](Connection& connection) {
        return shown(connection, token, now);
      });
}

Task<http::Response> show(const UserRouteContext& context, http::Exchange& exchange) {
  const auto found =
      co_await look_up(context, Secret(http::query_parameter(exchange.query(), "token")),
                       deadline_after(kUserRequestLimit));
  if (!found) co_return api_error(found.error());
  co_return json_response(Json::object({{"account", found->account},
                                        {"email", found->invitation.email},
                                        {"userName", found->invitation.name},
                                        {"expires", time_text(found->invitation.expires_at)}}));
}

struct Joined {
  std::string user_id;
  std::string name;
  std::int64_t account = 0;
  std::string account_id;
  Secret session;  // empty: the caller keeps its own
};

// Lets every process read again who administers the account.
Result<void> announce(Connection& connection, const Account& account, Micros now) {
  return add_account_change(connection, account.number, now);
}

Result<Joined> join_as_new_user(Connection& connection, const Secret& token,
                                const std::string& name, const std::string& hash, Micros now) {
  auto user = accept_as_new_user(connection, token, name, hash, now);
  if (!user) return std::unexpected(std::move(user.error()));
  const auto account = account_of_number(connection, user->active_account);
  if (!account) return std::unexpected(account.error());
  if (auto seen = set_user_seen(connection, user->id, now); !seen) {
    return std::unexpected(std::move(seen.error()));
  }
  if (auto announced = announce(connection, *account, now); !announced) {
    return std::unexpected(std::move(announced.error()));
  }
  auto session = create_session(connection, user->id, now);
  if (!session) return std::unexpected(std::move(session.error()));
  return Joined{.user_id = user->id,
                .name = user->name,
                .account = account->number,
                .account_id = account->id,
                .session = std::move(*session)};
}

Result<Joined> join_as_user(Connection& connection, const Secret& token, const Caller& caller,
                            Micros now) {
  const auto account = accept_as_user(connection, token, caller.user_id, now);
  if (!account) return std::unexpected(account.error());
  if (auto announced = announce(connection, *account, now); !announced) {
    return std::unexpected(std::move(announced.error()));
  }
  return Joined{.user_id = caller.user_id,
                .name = caller.name,
                .account = account->number,
                .account_id = account->id,
                .session = {}};
}

// Returns the user of the session that a request has, or null without one. An API key is refused.
Task<Result<CallerPtr>> signed_in(const UserRouteContext& context, http::Exchange& exchange,
                                  const std::string& peer, Deadline deadline) {
  const auto& headers = exchange.request().headers;
  const auto sent = sent_token(headers, context.authenticator.cookie());
  if (sent.kind == SentToken::Kind::none) co_return CallerPtr();
  if (parse_api_key(sent.token.reveal())) {
    co_return std::unexpected(Error{.code = ErrorCode::forbidden,
                                    .message = "An API key cannot accept an invitation.",
                                    .http_status = 403});
  }
  auto caller = co_await context.authenticator.authenticate(headers, peer, deadline);
  // An ended session is as good as none: the person joins as a new user.
  if (!caller && caller.error().code == ErrorCode::unauthenticated) co_return CallerPtr();
  co_return caller;
}

Task<Result<Joined>> join_new(const UserRouteContext& context, const Json& body, Secret token,
                              Deadline deadline) {
  // The invitation is read first: a request without a valid token must not occupy the thread that hashes passwords.
  const auto found = co_await look_up(context, token, deadline);
  if (!found) co_return std::unexpected(found.error());
  const auto name = string_at(body, {"name"});
  const auto& wanted = name.empty() ? found->invitation.name : name;
  if (auto mistake = user_name_mistake(wanted); !mistake.empty()) {
    co_return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  auto hash = co_await context.login.hash_new(Secret(string_at(body, {"password"})), deadline);
  if (!hash) co_return std::unexpected(std::move(hash.error()));
  co_return co_await context.database.write(
      deadline, [token, wanted, hash = std::move(*hash),
                 now = micros_at(wall_now())](Connection& connection) {
        return join_as_new_user(connection, token, wanted, hash, now);
      });
}

Task<http::Response> accept(const UserRouteContext& context, http::Exchange& exchange,
                            const std::string& peer, AuditEntry& entry) {
  const auto& headers = exchange.request().headers;
  if (!is_json_request(headers)) co_return api_error(415, "The body is not application/json.");
  if (is_from_other_site(headers, context.own_origins)) {
    co_return api_error(403, "Pages of other sites cannot accept an invitation.");
  }
  const auto body = co_await body_object(exchange);
  if (!body) co_return body.error();
  const auto deadline = deadline_after(kUserRequestLimit);
  Secret token(string_at(*body, {"token"}));
  if (token.reveal().size() > kMaxToken) token = Secret();
  const auto caller = co_await signed_in(context, exchange, peer, deadline);
  if (!caller) co_return api_error(caller.error());
  Result<Joined> joined = Joined();
  if (*caller) {
    joined = co_await context.database.write(
        deadline, [token, caller = *caller, now = micros_at(wall_now())](Connection& connection) {
          return join_as_user(connection, token, *caller, now);
        });
  } else {
    joined = co_await join_new(context, *body, token, deadline);
  }
  if (!joined) co_return api_error(joined.error());
  context.authenticator.forget(joined->account_id);
  entry.account = joined->account;
  entry.caller = joined->name;
  entry.caller_id = joined->user_id;
  Log("accounts")
      .info("an invitation was accepted",
            {{"user", joined->user_id}, {"account", joined->account_id}});
  auto response =
      json_response(Json::object({{"_id", joined->user_id}, {"account", joined->account_id}}));
  if (!joined->session.empty()) {
    response.headers.add("Set-Cookie",
                         session_cookie(context.authenticator.cookie(), joined->session));
  }
  co_return response;
}

http::RouteHandler limited(UserContext context, AttemptsPtr attempts, bool accepts) {
  return [context = std::move(context), attempts = std::move(attempts), accepts](
             http::Exchange& exchange, const http::RouteParameters&) -> Task<> {
    const auto peer = client_of(*context, exchange);
    auto entry =
        audit_entry(nullptr, peer, exchange.request().method + " " + std::string(exchange.path()));
    http::Response response;
    if (const auto refused = take_attempt(*attempts, peer)) {
      response = api_error(*refused);
    } else if (accepts) {
      response = co_await accept(*context, exchange, peer, entry);
    } else {
      response = co_await show(*context, exchange);
    }
    co_await audit_response(*context, exchange, response, std::move(entry));
    std::ignore = co_await exchange.reply(std::move(response));
  };
}

}  // namespace

void add_invitation_routes(const UserContext& context, std::vector<http::Route>& routes) {
  const auto attempts =
      std::make_shared<Attempts>(Attempts::Options{.burst = kBurst, .period = kPeriod});
  routes.push_back({.method = "GET",
                    .pattern = "/console/api/v1/invitation",
                    .guard = http::open_to_all(),
                    .handler = limited(context, attempts, false)});
  routes.push_back({.method = "POST",
                    .pattern = "/console/api/v1/invitation",
                    .guard = http::open_to_all(),
                    .handler = limited(context, attempts, true)});
}

}  // namespace gitops::control_plane_server
