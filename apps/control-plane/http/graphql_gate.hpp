#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/core/trace.hpp"
#include "common/graphql/caller_limit.hpp"
#include "common/graphql/engine.hpp"
#include "common/http/server.hpp"
#include "control-plane/accounts/authenticator.hpp"
#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

class AuditLog;

// Serves POST /2.0/api/graphql, and WebSockets at /2.0/api/broadcaster/graphql: authenticates the caller, checks the permissions and scopes of the operation's root
// fields before anything runs, and executes the operation in the engine. Loop thread only; outlives its requests.
//
// Statuses: 401 and 403 as {"message":…}; 400 for a document that does not parse or is not valid, in the form of a
// GraphQL response, since the public command line looks for its errors there; 429 and 503 with Retry-After; 200 for
// everything that ran, errors of fields included.
class GraphqlGate {
 public:
  struct Options {
    std::size_t max_body = 10UL * 1024 * 1024;    // bytes; the limit of the public gateway
    std::chrono::milliseconds timeout{30'000};    // of an operation
    std::size_t max_operations_per_caller = 100;  // at a time
    // Returns the client's address behind trusted proxies; empty: the peer's address is used.
    std::function<std::string(http::Exchange&)> client_of = {};
    AuditLog* audit = nullptr;  // of refusals; null: none
    Tracer* tracer = nullptr;   // of the spans of requests; null: none
  };
  // `engine`, `rows`, `authenticator` and `metrics` outlive this object.
  GraphqlGate(graphql::Engine& engine, const std::vector<FieldRow>& rows,
              Authenticator& authenticator, Metrics& metrics, Options options);

  Task<> serve(http::Exchange& exchange);
  // Serves the operations of a WebSocket in both protocols of common/graphql/socket.hpp. The credential is the member
  // `Authorization` of the payload of connection_init, or else that of the request. The caller is authenticated for each
  // operation, and again before each event of a subscription is sent.
  Task<> serve_socket(http::Exchange& exchange);
  [[nodiscard]] std::size_t max_body() const { return options_.max_body; }
  // Returns the next id of a request, unique among processes.
  std::string next_request_id() { return id_prefix_ + "-" + std::to_string(++requests_); }

 private:
  // Checks the credential and the permissions of an operation and returns the response that refuses it, if any. Null:
  // the engine refused the document.
  Task<std::optional<http::Response>> admit(const graphql::Prepared* operation,
                                            http::Exchange& exchange, RequestContext& context,
                                            std::shared_ptr<void>& permit);
  [[nodiscard]] std::optional<Error> refusal_of(const graphql::Prepared* operation,
                                                const Caller* caller) const;
  Task<Result<std::shared_ptr<void>>> admit_socket(const graphql::Prepared& operation,
                                                   const http::Headers& credential,
                                                   RequestContext& context);
  void audit_refusal(const graphql::Prepared* operation, const RequestContext& context,
                     const Error& error);
  [[nodiscard]] bool needs_caller(const graphql::Prepared* operation) const;

  graphql::Engine& engine_;
  const std::vector<FieldRow>& rows_;
  Authenticator& authenticator_;
  Options options_;
  std::string id_prefix_;
  std::uint64_t requests_ = 0;
  graphql::CallerLimit running_;
  Counter& operations_;
  Counter& unauthenticated_;
  Counter& forbidden_;
};

}  // namespace gitops::control_plane_server
