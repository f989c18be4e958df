#pragma once

#include <vector>

#include "common/http/router.hpp"
#include "control-plane/accounts/caller_routes.hpp"

namespace gitops::control_plane_server {

// Adds the routes of teams:
//
//   GET     /api/team                                 the teams of the account, for every caller
//   POST    /api/team                                 {"name","users":[ids]}; for administrators, as the following ones
//   DELETE  /api/team/{id}
//   PUT     /api/team/{id}/renameTeam                 {"name"}
//   PUT     /api/team/{id}/{user}/assignUserToTeam
//   PUT     /api/team/{id}/{user}/deleteUserFromTeam
//   GET     /api/team/group/synchronize/name/{client}/type/{type}   refused: there are no groups to synchronise with
//
// The built-in teams follow the members of the account, so they are neither renamed nor removed, and nobody is put into
// them by these routes.
void add_team_routes(const UserContext& context, std::vector<http::Route>& routes);

}  // namespace gitops::control_plane_server
