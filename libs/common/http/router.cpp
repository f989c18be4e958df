#include "common/http/router.hpp"

#include <tuple>
#include <utility>

#include "common/core/text.hpp"

namespace gitops::http {
namespace {

std::vector<RouteTable::Row> rows_of(const std::vector<Route>& routes) {
  std::vector<RouteTable::Row> rows;
  rows.reserve(routes.size());
  for (const Route& route : routes) rows.push_back({route.method, route.pattern});
  return rows;
}

Response plain_refusal(int status, std::string_view message) {
  return text_response(status, std::string(message) + "\n");
}

}  // namespace

Response text_response(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = std::move(body)};
}

Guard open_to_all() {
  return [](Exchange&) -> Task<Result<void>> { co_return Result<void>{}; };
}

RouteHandler answer_with(std::function<Response(const Exchange&, const RouteParameters&)> make) {
  return [make = std::move(make)](Exchange& exchange, const RouteParameters& parameters) -> Task<> {
    // A client that disconnected before the response is not an error.
    std::ignore = co_await exchange.reply(make(exchange, parameters));
  };
}

Router::Router(std::vector<Route> routes, Refusal refusal)
    : routes_(std::move(routes)),
      table_(rows_of(routes_)),
      refusal_(refusal ? std::move(refusal) : plain_refusal) {}

Task<> Router::serve(Exchange& exchange) const {
  return serve(exchange, exchange.path());
}

Task<> Router::serve(Exchange& exchange, std::string_view path) const {
  const RouteMatch match = table_.match(exchange.request().method, path);
  Response response;
  switch (match.kind) {
    case RouteMatch::Kind::malformed:
      response = refusal_(400, "the path is malformed");
      break;
    case RouteMatch::Kind::not_found:
      response = refusal_(404, "not found");
      break;
    case RouteMatch::Kind::method_not_allowed:
      response = refusal_(405, "method not allowed");
      response.headers.set("Allow", match.allow);
      break;
    case RouteMatch::Kind::options:
      response.status = 204;
      response.headers.set("Allow", match.allow);
      break;
    case RouteMatch::Kind::found: {
      const Route& route = routes_[match.row];
      exchange.name_route(route.pattern);
      if (const auto passed = co_await route.guard(exchange); !passed) {
        const int status = passed.error().http_status;
        response = refusal_(status == 0 ? 403 : status, passed.error().message);
        break;
      }
      if (exchange.limit_body(route.max_body)) {
        co_await route.handler(exchange, match.parameters);
        co_return;
      }
      response = refusal_(
          413, "the request body is larger than " + byte_count(route.max_body) + ", the limit");
      break;
    }
  }
  // A client that disconnected before the response is not an error.
  std::ignore = co_await exchange.reply(std::move(response));
}

}  // namespace gitops::http
