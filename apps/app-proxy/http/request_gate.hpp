#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/resolvers/field_row.hpp"
#include "app-proxy/users/directory.hpp"
#include "common/core/metrics.hpp"
#include "common/graphql/caller_limit.hpp"
#include "common/graphql/engine.hpp"
#include "common/graphql/socket.hpp"
#include "common/http/cors.hpp"
#include "common/http/server.hpp"
#include "common/net/address_list.hpp"

namespace gitops::app_proxy {

// Checks every request before it reaches a resolver: CORS, request id, authentication, permitted
// source, and the user's number of running operations. Serves GraphQL over POST and WebSocket. Loop
// thread only.
class RequestGate {
 public:
  struct Options {
    std::vector<std::string> cors_origins = {};
    net::AddressList trusted_proxies = {};  // their X-Forwarded-For is trusted
    std::size_t max_operations = 20;        // concurrent, of one user
    // Slightly below the usual response timeout of proxies in front.
    std::chrono::milliseconds timeout{55'000};
    bool playground = false;
    Tracer* tracer = nullptr;  // of the spans of requests; outlives the gate
  };
  // All of them outlive it.
  RequestGate(graphql::Engine& engine, const std::vector<FieldRow>& rows, UserDirectory& users,
              Metrics& metrics, Options options);

  // Adds the header fields that every response has.
  void add_common_headers(http::Exchange& exchange);
  Task<> serve_post(http::Exchange& exchange);
  Task<> serve_get(http::Exchange& exchange);

  // The caller of a REST route, with one of the user's permits.
  struct Admission {
    Caller caller;
    std::shared_ptr<void> permit;
    Span span = {};  // of the request
  };
  // Authenticates the caller. Returns nullopt when the request was refused; the response has been
  // sent.
  Task<std::optional<Admission>> authenticate(http::Exchange& exchange,
                                              http::Headers of_refusal = {});
  // Authenticates with a credential from outside of the request's head, as from a form. Sends
  // nothing; errors are those of UserDirectory::find(), and `too_many_requests`.
  Task<Result<Admission>> identify(http::Exchange& exchange, RequestCredential credential);
  // A caller before authentication, with an address and the request id that the response has.
  [[nodiscard]] Caller caller_of(http::Exchange& exchange);
  // Looks up the user of the request's credential again, and updates `caller`.
  Task<Result<void>> reauthenticate(http::Exchange& exchange, Caller& caller);

 private:
  // Begins the span of the request, which becomes the caller's trace.
  [[nodiscard]] Span begin_span(const http::Exchange& exchange, std::string_view name,
                                Caller& caller);
  [[nodiscard]] std::string request_id_of(const http::Request& request);
  [[nodiscard]] std::string client_of(http::Exchange& exchange) const;
  [[nodiscard]] bool needs_user(const graphql::Prepared* operation) const;
  Task<Result<std::shared_ptr<const User>>> user_of(const RequestCredential& credential,
                                                    const http::Request& request,
                                                    const std::string& peer, Deadline deadline);
  Result<std::shared_ptr<void>> acquire_permit(const Caller& caller);
  [[nodiscard]] bool may_open_socket(const http::Request& request) const;
  Task<> serve_socket(http::Exchange& exchange);

  graphql::Engine& engine_;
  const std::vector<FieldRow>& rows_;
  UserDirectory& users_;
  http::Cors cors_;
  Options options_;
  std::string id_prefix_;
  std::uint64_t requests_ = 0;
  graphql::CallerLimit running_;  // operations of users
  Counter& operations_;
  Counter& unauthenticated_;
};

// Response for a refusal: {"error":"Unauthorized: Invalid token."} for 401, otherwise in the form
// of REST errors.
http::Response refusal_response(const Error& error);
// Adds Retry-After, in whole seconds, if the error requests a pause.
void add_retry_after(http::Response& response, const Error& error);

}  // namespace gitops::app_proxy
