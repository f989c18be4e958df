#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/resolvers/field_row.hpp"
#include "app-proxy/users/directory.hpp"
#include "common/core/metrics.hpp"
#include "common/graphql/engine.hpp"
#include "common/graphql/socket.hpp"
#include "common/http/cors.hpp"
#include "common/http/server.hpp"
#include "common/net/address_list.hpp"

namespace gitops::app_proxy {

// What every request passes before it reaches a resolver: CORS, its id, whose it is, whether it may
// come from where it comes, and how much the same user has running. Serves GraphQL over POST and
// WebSocket. Loop thread only.
class RequestGate {
 public:
  struct Options {
    std::vector<std::string> cors_origins = {};
    net::AddressList trusted_proxies = {};  // whose X-Forwarded-For is believed
    std::size_t max_operations = 20;        // of one user at the same time
    // A little less than what proxies in front allow for an answer.
    std::chrono::milliseconds timeout{55'000};
    bool playground = false;
  };
  // All of them outlive it.
  RequestGate(graphql::Engine& engine, const std::vector<FieldRow>& rows, UserDirectory& users,
              Metrics& metrics, Options options);

  // Adds the fields that every answer has.
  void add_common_headers(http::Exchange& exchange);
  Task<> serve_post(http::Exchange& exchange);
  Task<> serve_get(http::Exchange& exchange);

  // Who asks on a route that is not GraphQL's, with one of the permits of that user.
  struct Admission {
    Caller caller;
    std::shared_ptr<void> permit;
  };
  // Nullopt when the request was refused; the refusal has been sent.
  Task<std::optional<Admission>> authenticate(http::Exchange& exchange,
                                              http::Headers of_refusal = {});
  // The same for a credential that came in another way than in the request's head, as in a form.
  // Nothing is sent; errors are those of UserDirectory::find(), and too_many_requests.
  Task<Result<Admission>> identify(http::Exchange& exchange, RequestCredential credential);
  // A caller who is not known: with an id, which the answer tells, and an address.
  [[nodiscard]] Caller caller_of(http::Exchange& exchange);
  // Asks again whose the credential of that request is, and takes the user over.
  Task<Result<void>> reauthenticate(http::Exchange& exchange, Caller& caller);

 private:
  // One of the permits that a user has; its destructor gives it back.
  class Permit;

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
  std::shared_ptr<std::map<std::string, std::size_t>> running_;  // operations by user
  Counter& operations_;
  Counter& unauthenticated_;
};

// {"error":"Unauthorized: Invalid token."} for 401, the form of REST errors for the rest.
http::Response refusal_response(const Error& error);
// Adds Retry-After, in whole seconds, if the error asks for a pause.
void add_retry_after(http::Response& response, const Error& error);

}  // namespace gitops::app_proxy
