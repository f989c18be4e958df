#include "control-plane/accounts/caller_routes.hpp"

#include <tuple>
#include <utility>

#include "common/core/json_value.hpp"
#include "control-plane/accounts/audit_routes.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

}  // namespace

http::Response json_response(const Json& json, int status) {
  return {.status = status,
          .headers = {{"Content-Type", "application/json; charset=utf-8"},
                      {"Cache-Control", "no-store"}},
          .body = to_text(json)};
}

void CallerRoutes::add(std::string method, std::string pattern, CallerHandler handler,
                       Scopes scopes) {
  routes_.push_back({.method = std::move(method),
                     .pattern = std::move(pattern),
                     .guard = http::open_to_all(),
                     .handler = for_callers(context_, std::move(handler), std::move(scopes))});
}

std::string client_of(const UserRouteContext& context, http::Exchange& exchange) {
  return context.client_of ? context.client_of(exchange) : exchange.peer_address();
}

http::RouteHandler for_callers(UserContext context, CallerHandler handler, Scopes scopes) {
  return [context = std::move(context), handler = std::move(handler), scopes = std::move(scopes)](
             http::Exchange& exchange, const http::RouteParameters& parameters) -> Task<> {
    const auto deadline = deadline_after(kUserRequestLimit);
    const auto peer = client_of(*context, exchange);
    auto caller =
        co_await context->authenticator.authenticate(exchange.request().headers, peer, deadline);
    auto entry = audit_entry(caller ? caller->get() : nullptr, peer,
                             exchange.request().method + " " + std::string(exchange.path()));
    http::Response response;
    if (!caller) {
      response = api_error(caller.error());
    } else if (const auto refused = scope_refusal(**caller, scopes)) {
      response = api_error(*refused);
    } else {
      response = co_await handler({.context = *context,
                                   .exchange = exchange,
                                   .parameters = parameters,
                                   .caller = std::move(*caller),
                                   .deadline = deadline,
                                   .audit_target = entry.target});
    }
    co_await audit_response(*context, exchange, response, std::move(entry));
    // A client that disconnects before the response is not an error.
    std::ignore = co_await exchange.reply(std::move(response));
  };
}

http::Response no_user() {
  return api_error(403, "A runtime's token belongs to no user.");
}

std::optional<Error> administration_refusal(const Caller& caller) {
  if (caller.is_runtime() || (!caller.is_admin && !caller.is_system_admin)) {
    return Error{.code = ErrorCode::forbidden,
                 .message = "Only an administrator of the account may do this.",
                 .http_status = 403};
  }
  return key_change_refusal(caller);
}

bool is_json_request(const http::Headers& headers) {
  const auto type = headers.find("Content-Type").value_or("");
  return http::equal_ignoring_case(type.substr(0, type.find_first_of("; ")), "application/json");
}

Task<std::expected<Json, http::Response>> body_object(http::Exchange& exchange) {
  auto body = co_await exchange.read_decoded_body();
  if (!body) {
    const int status = body.error().http_status;
    co_return std::unexpected(api_error(status >= 400 ? status : 400, body.error().message));
  }
  auto json = parse_json_object(*body);
  if (!json.is_object()) {
    co_return std::unexpected(api_error(400, "The body is not a JSON object."));
  }
  co_return json;
}

}  // namespace gitops::control_plane_server
