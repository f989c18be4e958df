#pragma once

#include <vector>

#include "common/http/router.hpp"
#include "control-plane/accounts/caller_routes.hpp"

namespace gitops::control_plane_server {

// Adds the routes of API keys:
//
//   POST, GET               /api/auth/key, /api/auth/keys                the caller's keys; a new one is shown once
//   GET, PATCH, DELETE      /api/auth/key/{id}                           one of them; administrators: any of the account
//   POST, GET               /api/auth/key/service-user/{id}              the same for the keys of a service account, for
//   GET, PATCH, DELETE      /api/auth/key/service-user/{id}/{key}        administrators
void add_key_routes(const UserContext& context, std::vector<http::Route>& routes);

}  // namespace gitops::control_plane_server
