#pragma once

#include <vector>

#include "common/http/router.hpp"
#include "control-plane/accounts/caller_routes.hpp"

namespace gitops::control_plane_server {

// Adds the routes by which users change their passwords and administrators manage the users of their account:
//
//   POST  /console/api/v1/password             {"password","newPassword"}; needs a session, which continues under a new
//                                              token while all others end
//   GET   /console/api/v1/users                the members of the account
//   PATCH /console/api/v1/users/{id}           {"disabled": true|false}
//   PUT   /console/api/v1/users/{id}/password  {"password"}; without one a password is generated and returned once
//
// Passwords, users and sessions belong to the installation, so an administrator of one account manages only users who are
// in no other account and administer nothing beyond it. An administrator of the installation manages all.
void add_password_routes(const UserContext& context, std::vector<http::Route>& routes);

}  // namespace gitops::control_plane_server
