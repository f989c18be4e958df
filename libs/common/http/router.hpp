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

// Decides whether a request may reach its handler. An error is answered with its http_status (403
// when it has none) and its message.
using Guard = std::function<Task<Result<void>>(Exchange&)>;
// Allows everybody.
Guard open_to_all();

using RouteHandler = std::function<Task<>(Exchange&, const RouteParameters&)>;
// A handler that needs only the head of the request and never waits.
RouteHandler answer_with(std::function<Response(const Exchange&, const RouteParameters&)> make);

struct Route {
  std::string method;
  std::string pattern;  // as in RouteTable
  Guard guard;          // every row says who may call it
  RouteHandler handler;
  std::size_t max_body = 64 * 1024;  // bytes; a longer body is answered with 413
};

// Answers a server's requests by a table of routes: each request goes to the row that matches it,
// and 400, 404, 405, 413, OPTIONS and refusals of guards are answered here. Lives on the loop
// thread and outlives its requests.
class Router {
 public:
  // Makes the answer to a request that reaches no handler. The Allow field of a 405 is added to it.
  using Refusal = std::function<Response(int status, std::string_view message)>;

  // Throws std::logic_error for mistakes in the table. Without `refusal`, errors are plain text.
  explicit Router(std::vector<Route> routes, Refusal refusal = {});

  Task<> serve(Exchange& exchange) const;
  // The same for another path than the request's: where paths have several forms.
  Task<> serve(Exchange& exchange, std::string_view path) const;

 private:
  std::vector<Route> routes_;
  RouteTable table_;
  Refusal refusal_;
};

Response text_response(int status, std::string body);

}  // namespace gitops::http
