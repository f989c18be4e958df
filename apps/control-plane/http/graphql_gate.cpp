#include "control-plane/http/graphql_gate.hpp"

#include <algorithm>
#include <utility>

#include <prometheus/counter.h>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "common/graphql/http_endpoint.hpp"
#include "common/graphql/socket.hpp"
#include "common/http/traced.hpp"
#include "control-plane/accounts/audit_routes.hpp"
#include "control-plane/accounts/user_routes.hpp"
#include "control-plane/audit/audit_log.hpp"
#include "control-plane/resolvers/table.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::chrono::seconds kCallerTimeout{10};
constexpr std::size_t kIdPrefixBytes = 6;

RootType root_of(const graphql::Prepared& operation) {
  switch (operation.kind()) {
    case graphql::OperationKind::query:
      return RootType::query;
    case graphql::OperationKind::mutation:
      return RootType::mutation;
    case graphql::OperationKind::subscription:
      return RootType::subscription;
  }
  return RootType::query;
}

std::string caller_key(const Caller& caller) {
  return caller.is_runtime() ? std::to_string(caller.account->number) + "/" + caller.runtime
                             : caller.user_id;
}

// Returns the credential in the payload of connection_init, since a page's script cannot set the headers of a WebSocket;
// without one, the headers of the request.
http::Headers credential_of(std::string_view payload, const http::Headers& request) {
  JsonParser parser;
  const auto json = parser.parse(payload, "connection_init");
  if (!json) return request;
  for (const auto* name : {"Authorization", "authorization", "x-access-token"}) {
    const auto value = (*json)[name].text();
    if (!value.empty()) return {{name, std::string(value)}};
  }
  return request;
}

}  // namespace

GraphqlGate::GraphqlGate(graphql::Engine& engine, const std::vector<FieldRow>& rows,
                         Authenticator& authenticator, Metrics& metrics, Options options)
    : engine_(engine),
      rows_(rows),
      authenticator_(authenticator),
      options_(std::move(options)),
      id_prefix_(hex_encode(random_bytes(kIdPrefixBytes))),
      running_(options_.max_operations_per_caller),
      operations_(
          metrics.counter("gitops_control_plane_operations_total", "GraphQL operations that ran")),
      unauthenticated_(metrics.counter("gitops_control_plane_operations_unauthenticated_total",
                                       "GraphQL requests refused for their credential")),
      forbidden_(metrics.counter("gitops_control_plane_operations_forbidden_total",
                                 "GraphQL requests refused for a permission of a field")) {}

bool GraphqlGate::needs_caller(const graphql::Prepared* operation) const {
  if (operation == nullptr) return true;
  const auto fields = operation->root_fields();
  return fields.empty() || std::ranges::any_of(fields, [&](std::string_view field) {
           return permission_of(rows_, root_of(*operation), field) != Permission::anyone;
         });
}

std::optional<Error> GraphqlGate::refusal_of(const graphql::Prepared* operation,
                                             const Caller* caller) const {
  if (operation == nullptr) return std::nullopt;
  for (const auto field : operation->root_fields()) {
    auto refused = field_refusal(rows_, root_of(*operation), field, caller);
    if (!refused) continue;
    refused->message = std::string(field) + ": " + refused->message;
    return refused;
  }
  return std::nullopt;
}

void GraphqlGate::audit_refusal(const graphql::Prepared* operation, const RequestContext& context,
                                const Error& error) {
  if (options_.audit == nullptr || error.code == ErrorCode::unavailable) return;
  std::string action = "POST /2.0/api/graphql";
  if (operation != nullptr && !operation->root_fields().empty()) {
    action = operation->root_fields().front();
  }
  auto entry = audit_entry(context.caller.get(), context.peer, std::move(action));
  entry.result = AuditResult::refused;
  entry.detail = error.message;
  entry.request_id = context.request_id;
  options_.audit->add_refusal(std::move(entry));
}

Task<std::optional<http::Response>> GraphqlGate::admit(const graphql::Prepared* operation,
                                                       http::Exchange& exchange,
                                                       RequestContext& context,
                                                       std::shared_ptr<void>& permit) {
  if (needs_caller(operation)) {
    // Only `me` has the scope of page tokens, so that refusal_of() refuses them for every other field.
    auto caller = co_await authenticator_.authenticate(exchange.request().headers, context.peer,
                                                       deadline_after(kCallerTimeout),
                                                       Authenticator::PageTokens::accepted);
    if (!caller) {
      unauthenticated_.Increment();
      audit_refusal(operation, context, caller.error());
      co_return api_error(caller.error());
    }
    context.caller = std::move(*caller);
  }
  if (const auto refused = refusal_of(operation, context.caller.get())) {
    forbidden_.Increment();
    audit_refusal(operation, context, *refused);
    co_return api_error(*refused);
  }
  if (context.caller != nullptr) {
    auto acquired = running_.acquire(caller_key(*context.caller));
    if (!acquired) co_return api_error(acquired.error());
    permit = std::move(*acquired);
  }
  if (operation != nullptr) operations_.Increment();
  co_return std::nullopt;
}

Task<Result<std::shared_ptr<void>>> GraphqlGate::admit_socket(const graphql::Prepared& operation,
                                                              const http::Headers& credential,
                                                              RequestContext& context) {
  auto caller = co_await authenticator_.authenticate(credential, context.peer,
                                                     deadline_after(kCallerTimeout));
  if (!caller) {
    unauthenticated_.Increment();
    co_return std::unexpected(std::move(caller.error()));
  }
  context.caller = std::move(*caller);
  if (auto refused = refusal_of(&operation, context.caller.get())) {
    forbidden_.Increment();
    co_return std::unexpected(std::move(*refused));
  }
  co_return running_.acquire(caller_key(*context.caller));
}

Task<> GraphqlGate::serve_socket(http::Exchange& exchange) {
  const std::string peer =
      options_.client_of ? options_.client_of(exchange) : exchange.peer_address();
  http::Headers credential;
  graphql::SocketOptions options;
  options.timeout = options_.timeout;
  options.recheck_interval = std::chrono::milliseconds(0);
  options.admission = [&](const graphql::Prepared& operation, const graphql::Context& context) {
    return admit_socket(operation, credential, context.get<RequestContext>());
  };
  const auto open = [&](std::string_view payload) -> Task<Result<graphql::MakeContext>> {
    credential = credential_of(payload, exchange.request().headers);
    auto caller =
        co_await authenticator_.authenticate(credential, peer, deadline_after(kCallerTimeout));
    if (!caller) {
      unauthenticated_.Increment();
      co_return std::unexpected(std::move(caller.error()));
    }
    co_return [this, peer] {
      auto context = std::make_shared<RequestContext>();
      context->request_id = next_request_id();
      context->peer = peer;
      const graphql::Context borrowed(*context);
      return graphql::OperationContext{.context = borrowed, .owner = std::move(context)};
    };
  };
  co_await graphql::serve_socket(exchange, engine_, open, options);
}

Task<> GraphqlGate::serve(http::Exchange& exchange) {
  RequestContext context{
      .caller = {},
      .request_id = next_request_id(),
      .peer = options_.client_of ? options_.client_of(exchange) : exchange.peer_address()};
  exchange.add_to_answer("X-Request-Id", context.request_id);
  auto span = http::server_span(options_.tracer, exchange.request().headers, "POST graphql");
  span.set("gitops.request_id", context.request_id);
  std::shared_ptr<void> permit;
  graphql::HttpOptions options;
  options.max_body = options_.max_body;
  options.timeout = options_.timeout;
  options.refused_status = 400;
  options.admission = [&](const graphql::Prepared* operation) {
    if (operation != nullptr) {
      for (const auto field : operation->root_fields()) span.set("graphql.root_field", field);
    }
    return admit(operation, exchange, context, permit);
  };
  co_await graphql::serve_http(exchange, engine_, graphql::Context(context), options);
}

}  // namespace gitops::control_plane_server
