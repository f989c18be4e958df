#pragma once

#include <vector>

#include "common/http/router.hpp"
#include "control-plane/accounts/caller_routes.hpp"

namespace gitops::control_plane_server {

// Adds the routes by which administrators manage the users of their account, as Terraform sends them:
//
//   GET           /api/accounts/{id}/users              its members and its pending users
//   POST          /api/accounts/{id}/adduser            {"userDetails": mail} or {"userName","email"}: invites
//   DELETE        /api/accounts/{id}/{user}             removes a member, or withdraws an invitation
//   POST          /api/accounts/{id}/{user}/updateuser  the body of adduser
//   POST, DELETE  /api/accounts/{id}/{user}/admin       makes an administrator, or a user again
//
// Nothing is mailed: the response of adduser has the link of the invitation (`inviteUrl`), once. An address that a member
// has already returns that member. An administrator of the installation manages the users of every account; for others
// another account is absent. The last administrator of an account is neither removed nor made a user. A user who leaves
// its last account is removed from the installation.
void add_member_routes(const UserContext& context, std::vector<http::Route>& routes);

}  // namespace gitops::control_plane_server
