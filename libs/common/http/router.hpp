#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/http/route_table.hpp"
#include "common/http/server.hpp"

namespace gitops::http {

// Authorizes a request for its handler. The response to an error has its http_status (403 if it has
// none) and its message.
using Guard = std::function<Task<Result<void>>(Exchange&)>;
// Returns a guard that allows all requests.
Guard open_to_all();

using RouteHandler = std::function<Task<>(Exchange&, const RouteParameters&)>;
// Returns a handler that needs only the head of the request and never waits.
RouteHandler answer_with(std::function<Response(const Exchange&, const RouteParameters&)> make);

struct Route {
  std::string method;
  std::string pattern;  // as in RouteTable
  Guard guard;          // required for every row
  RouteHandler handler;
  std::size_t max_body = 64 * 1024;  // bytes; a longer body is refused with 413
};

// Serves a server's requests by a table of routes. Each request goes to the matching row. The
// router itself responds with 400, 404, 405 and 413, to OPTIONS, and to errors of guards. Loop
// thread only; it must outlive its requests.
class Router {
 public:
  // Makes the response to a request that reaches no handler. The router adds the Allow field to a
  // 405.
  using Refusal = std::function<Response(int status, std::string_view message)>;

  // Throws std::logic_error for mistakes in the table. Without `refusal`, errors are plain text.
  explicit Router(std::vector<Route> routes, Refusal refusal = {});

  Task<> serve(Exchange& exchange) const;
  // Serves the request by another path than its own, for paths with several forms.
  Task<> serve(Exchange& exchange, std::string_view path) const;

 private:
  std::vector<Route> routes_;
  RouteTable table_;
  Refusal refusal_;
};

Response text_response(int status, std::string body);

}  // namespace gitops::http
