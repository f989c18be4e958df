#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "common/http/router.hpp"
#include "control-plane/http/console_assets.hpp"
#include "control-plane/http/graphql_gate.hpp"

namespace gitops::control_plane_server {

// Returns all routes of the port: those of the components, GraphQL, the console, and 404 in the platform's form for all others. The
// server never redirects, since Go's clients would repeat a POST as a GET.
std::vector<http::Route> all_routes(GraphqlGate& graphql,
                                    std::vector<std::vector<http::Route>> parts,
                                    PageOrigins page_origins = {});

// A row of the documented table of routes. A test compares the table with all_routes().
struct ListedRoute {
  std::string_view method;
  std::string_view pattern;
  std::string_view callers;
  std::string_view purpose;
};
std::span<const ListedRoute> route_list();

}  // namespace gitops::control_plane_server
