#pragma once

#include <vector>

#include "common/http/router.hpp"
#include "control-plane/accounts/caller_routes.hpp"

namespace gitops::control_plane_server {

// Adds the routes by which administrators manage the service accounts of their account, as Terraform sends them:
//
//   GET, POST           /api/service-users       {"userName","teamIds","assignAdminRole"}
//   GET, PATCH, DELETE  /api/service-users/{id}  PATCH also {"enabled"}
//
// A PATCH with userName describes the whole service account: without teamIds it is in no team, and without
// assignAdminRole it is no administrator, because Terraform leaves out what is empty or false. A PATCH with `enabled`
// alone changes nothing else. Keys of a disabled service account are invalid at once.
void add_service_account_routes(const UserContext& context, std::vector<http::Route>& routes);

}  // namespace gitops::control_plane_server
