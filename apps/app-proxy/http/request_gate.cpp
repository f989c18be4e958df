#include "app-proxy/http/request_gate.hpp"

#include <algorithm>
#include <utility>

#include <prometheus/counter.h>

#include "app-proxy/http/playground.hpp"
#include "app-proxy/http/routes.hpp"
#include "app-proxy/resolvers/table.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/graphql/http_endpoint.hpp"
#include "common/http/traced.hpp"
#include "common/http/wire_text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxRequestId = 64;
constexpr std::size_t kMaxSocketMessage = 1024 * 1024;
constexpr std::chrono::seconds kUserTimeout{15};

std::unexpected<Error> unauthorized() {
  return std::unexpected(Error{.code = ErrorCode::unauthenticated,
                               .message = "Unauthorized: Invalid token.",
                               .http_status = 401});
}

// Checks for an Origin of a browser. Programs send other values, as the Go SDK its host.
bool is_origin(std::string_view text) {
  return text == "null" || text.contains("://");
}

std::string user_key(const User& user) {
  return user.is_runtime ? "runtime" : "user " + user.id;
}

}  // namespace

void add_retry_after(http::Response& response, const Error& error) {
  if (error.retry_after.count() <= 0) return;
  response.headers.add(
      "Retry-After",
      std::to_string(std::chrono::ceil<std::chrono::seconds>(error.retry_after).count()));
}

http::Response refusal_response(const Error& error) {
  const int status = error.http_status >= 400                    ? error.http_status
                     : error.code == ErrorCode::invalid_argument ? 400
                     : error.code == ErrorCode::forbidden        ? 403
                     : error.code == ErrorCode::not_found        ? 404
                                                                 : 503;
  auto response = rest_error(status, error.message);
  if (status == 401) {
    response.body = R"({"error":"Unauthorized: Invalid token."})";
    response.headers.add("WWW-Authenticate", "Bearer");
  }
  add_retry_after(response, error);
  return response;
}

RequestGate::RequestGate(graphql::Engine& engine, const std::vector<FieldRow>& rows,
                         UserDirectory& users, Metrics& metrics, Options options)
    : engine_(engine),
      rows_(rows),
      users_(users),
      cors_(options.cors_origins),
      options_(std::move(options)),
      id_prefix_(hex_encode(random_bytes(6)) + "-"),
      running_(options_.max_operations),
      operations_(
          metrics.counter("gitops_app_proxy_operations_total", "GraphQL operations that ran")),
      unauthenticated_(metrics.counter("gitops_app_proxy_unauthenticated_total",
                                       "Requests refused because nobody is known by their token")) {
}

void RequestGate::add_common_headers(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  for (const auto& [name, value] : cors_.fields(request.headers.find("Origin"))) {
    exchange.add_to_answer(name, value);
  }
  exchange.add_to_answer("X-Content-Type-Options", "nosniff");
}

std::string RequestGate::request_id_of(const http::Request& request) {
  const auto given = request.headers.find("X-Request-Id");
  if (given && given->size() <= kMaxRequestId && http::is_token(*given)) return std::string(*given);
  return id_prefix_ + std::to_string(++requests_);
}

std::string RequestGate::client_of(http::Exchange& exchange) const {
  return net::client_address(exchange.peer_address(),
                             http::joined_values(exchange.request().headers, "X-Forwarded-For"),
                             options_.trusted_proxies);
}

Caller RequestGate::caller_of(http::Exchange& exchange) {
  Caller caller{.request_id = request_id_of(exchange.request()), .peer = client_of(exchange)};
  exchange.add_to_answer("X-Request-Id", caller.request_id);
  return caller;
}

Span RequestGate::begin_span(const http::Exchange& exchange, std::string_view name,
                             Caller& caller) {
  auto span = http::server_span(options_.tracer, exchange.request().headers, name);
  span.set("url.path", exchange.path());
  span.set("gitops.request_id", caller.request_id);
  caller.trace = span.context();
  return span;
}

bool RequestGate::needs_user(const graphql::Prepared* operation) const {
  if (!operation) return true;
  const auto fields = operation->root_fields();
  const auto root =
      operation->kind() == graphql::OperationKind::mutation ? RootType::mutation : RootType::query;
  return fields.empty() || std::ranges::any_of(fields, [&](std::string_view field) {
           return permission_of(rows_, root, field) != Permission::anyone;
         });
}

Task<Result<std::shared_ptr<const User>>> RequestGate::user_of(const RequestCredential& credential,
                                                               const http::Request& request,
                                                               const std::string& peer,
                                                               Deadline deadline) {
  using Kind = RequestCredential::Kind;
  if (credential.kind == Kind::none || credential.kind == Kind::malformed) {
    unauthenticated_.Increment();
    co_return unauthorized();
  }
  // A browser adds cookies to requests of any page; only known pages may use them.
  if (credential.kind == Kind::cookie &&
      !cors_.names(request.headers.find("Origin").value_or(""))) {
    co_return std::unexpected(
        Error{.code = ErrorCode::forbidden,
              .message = "a session cookie is only accepted from an origin of the setting CORS",
              .http_status = 403});
  }
  auto user = co_await users_.find(credential.sent, peer, deadline);
  if (!user && user.error().code == ErrorCode::unauthenticated) unauthenticated_.Increment();
  co_return user;
}

Result<std::shared_ptr<void>> RequestGate::acquire_permit(const Caller& caller) {
  if (!caller.user) return std::shared_ptr<void>();
  return running_.acquire(user_key(*caller.user));
}

Task<> RequestGate::serve_post(http::Exchange& exchange) {
  Caller caller = caller_of(exchange);
  Span span = begin_span(exchange, "POST graphql", caller);
  std::shared_ptr<void> permit;
  graphql::HttpOptions options;
  options.timeout = options_.timeout;
  options.admission =
      [&](const graphql::Prepared* operation) -> Task<std::optional<http::Response>> {
    if (needs_user(operation)) {
      const http::Request& request = exchange.request();
      auto user = co_await user_of(credential_of(request.headers), request, caller.peer,
                                   deadline_after(kUserTimeout));
      if (!user) co_return refusal_response(user.error());
      caller.user = std::move(*user);
    }
    auto acquired = acquire_permit(caller);
    if (!acquired) co_return refusal_response(acquired.error());
    permit = std::move(*acquired);
    if (operation) {
      operations_.Increment();
      for (const auto field : operation->root_fields()) span.set("graphql.root_field", field);
    }
    co_return std::nullopt;
  };
  co_await graphql::serve_http(exchange, engine_, graphql::Context(caller), options);
}

Task<std::optional<RequestGate::Admission>> RequestGate::authenticate(http::Exchange& exchange,
                                                                      http::Headers of_refusal) {
  Admission admission{.caller = caller_of(exchange), .permit = {}};
  admission.span = begin_span(exchange, exchange.request().method + " REST", admission.caller);
  auto checked = co_await reauthenticate(exchange, admission.caller);
  auto permit = checked ? acquire_permit(admission.caller)
                        : Result<std::shared_ptr<void>>(std::unexpected(checked.error()));
  if (!permit) {
    auto refusal = refusal_response(permit.error());
    for (const auto& [name, value] : of_refusal) refusal.headers.add(name, value);
    (void)co_await exchange.reply(std::move(refusal));
    co_return std::nullopt;
  }
  admission.permit = std::move(*permit);
  co_return std::optional<Admission>(std::move(admission));
}

Task<Result<RequestGate::Admission>> RequestGate::identify(http::Exchange& exchange,
                                                           RequestCredential credential) {
  Admission admission{.caller = caller_of(exchange), .permit = {}};
  auto user = co_await user_of(credential, exchange.request(), admission.caller.peer,
                               deadline_after(kUserTimeout));
  if (!user) co_return std::unexpected(std::move(user.error()));
  admission.caller.user = std::move(*user);
  auto permit = acquire_permit(admission.caller);
  if (!permit) co_return std::unexpected(std::move(permit.error()));
  admission.permit = std::move(*permit);
  co_return admission;
}

Task<Result<void>> RequestGate::reauthenticate(http::Exchange& exchange, Caller& caller) {
  const http::Request& request = exchange.request();
  auto user = co_await user_of(credential_of(request.headers), request, caller.peer,
                               deadline_after(kUserTimeout));
  if (!user) co_return std::unexpected(std::move(user.error()));
  caller.user = std::move(*user);
  co_return Result<void>();
}

Task<> RequestGate::serve_get(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  if (request.headers.has_token("Upgrade", "websocket")) {
    co_await serve_socket(exchange);
    co_return;
  }
  if (options_.playground && request.headers.find("Accept").value_or("").contains("text/html")) {
    (void)co_await exchange.reply(playground_page());
    co_return;
  }
  Caller nobody;
  co_await graphql::serve_http(exchange, engine_, graphql::Context(nobody));
}

// Checks the origin of a WebSocket. Pages of other sites must not open one: a browser adds cookies
// to the request, and CORS does not apply.
bool RequestGate::may_open_socket(const http::Request& request) const {
  const auto origin = request.headers.find("Origin");
  if (!origin || !is_origin(*origin) || cors_.names(*origin)) return true;
  const auto host = request.headers.find("Host").value_or("");
  const auto scheme = origin->find("://");
  return !host.empty() && scheme != std::string_view::npos &&
         http::equal_ignoring_case(origin->substr(scheme + 3), host);
}

Task<> RequestGate::serve_socket(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  if (!may_open_socket(request)) {
    (void)co_await exchange.reply(
        rest_error(403, "WebSockets are only opened for origins of the setting CORS"));
    co_return;
  }
  const Caller session = caller_of(exchange);
  RequestCredential credential;
  const auto check = [&](Caller& caller) -> Task<Result<void>> {
    auto user = co_await user_of(credential, request, caller.peer, deadline_after(kUserTimeout));
    if (!user) co_return std::unexpected(user.error());
    caller.user = std::move(*user);
    co_return Result<void>();
  };
  graphql::SocketOptions options;
  options.timeout = options_.timeout;
  options.session.max_operations = options_.max_operations;
  options.websocket.session.max_message = kMaxSocketMessage;
  // Refuses a user who has lost the permission since the session began.
  options.admission = [&](const graphql::Prepared&,
                          const graphql::Context& context) -> Task<Result<std::shared_ptr<void>>> {
    auto& caller = context.get<Caller>();
    if (auto checked = co_await check(caller); !checked) co_return std::unexpected(checked.error());
    auto acquired = acquire_permit(caller);
    if (acquired) operations_.Increment();
    co_return acquired;
  };
  // Each operation has its own caller: an admission replaces the user, while resolvers of other
  // operations still use theirs.
  const auto make_context = [&session] {
    auto caller = std::make_shared<Caller>(session);
    const graphql::Context context(*caller);
    return graphql::OperationContext{.context = context, .owner = std::move(caller)};
  };
  const auto open = [&](std::string_view payload) -> Task<Result<graphql::MakeContext>> {
    credential = credential_of_payload(payload);
    if (credential.kind == RequestCredential::Kind::none)
      credential = credential_of(request.headers);
    Caller caller = session;
    if (auto checked = co_await check(caller); !checked) co_return std::unexpected(checked.error());
    co_return graphql::MakeContext(make_context);
  };
  co_await graphql::serve_socket(exchange, engine_, open, options);
}

}  // namespace gitops::app_proxy
