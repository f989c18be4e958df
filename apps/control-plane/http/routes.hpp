#pragma once

#include <vector>

#include "common/http/router.hpp"
#include "control-plane/http/graphql_gate.hpp"

namespace gitops::control_plane_server {

// Returns all routes of the port: those of the components, GraphQL, and 404 in the platform's form below /2.0/api. The
// server never redirects, since Go's clients would repeat a POST as a GET.
std::vector<http::Route> all_routes(GraphqlGate& graphql,
                                    std::vector<std::vector<http::Route>> parts);

}  // namespace gitops::control_plane_server
