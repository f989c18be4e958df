#pragma once

#include <vector>

#include "common/http/router.hpp"
#include "control-plane/accounts/caller_routes.hpp"

namespace gitops::control_plane_server {

// Adds the routes by which a person accepts an invitation:
//
//   GET  /console/api/v1/invitation?token=…  the account and the mail address
//   POST /console/api/v1/invitation          {"token","name","password"}: makes the user and begins a session;
//                                            {"token"} with a session: the signed-in user joins the account
//
// The response to a token that is unknown, used, expired or withdrawn is one and the same. Attempts are limited for each
// address.
void add_invitation_routes(const UserContext& context, std::vector<http::Route>& routes);

}  // namespace gitops::control_plane_server
