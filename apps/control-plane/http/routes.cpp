#include "control-plane/http/routes.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "control-plane/accounts/user_routes.hpp"

namespace gitops::control_plane_server {

std::vector<http::Route> all_routes(GraphqlGate& graphql,
                                    std::vector<std::vector<http::Route>> parts) {
  std::vector<http::Route> routes;
  for (auto& part : parts) std::ranges::move(part, std::back_inserter(routes));
  // The gate authenticates the caller itself and checks permissions by field.
  routes.push_back(
      {.method = "POST",
       .pattern = "/2.0/api/graphql",
       .guard = http::open_to_all(),
       .handler = [&graphql](http::Exchange& exchange,
                             const http::RouteParameters&) { return graphql.serve(exchange); },
       .max_body = graphql.max_body()});
  for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    routes.push_back({.method = method,
                      .pattern = "/2.0/api/{rest...}",
                      .guard = http::open_to_all(),
                      .handler = http::answer_with([](const http::Exchange& exchange, const auto&) {
                        return api_error(404, "There is no " + exchange.request().method + " " +
                                                  std::string(exchange.path()) +
                                                  " on this server.");
                      })});
  }
  return routes;
}

}  // namespace gitops::control_plane_server
