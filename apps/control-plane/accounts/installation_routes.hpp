#pragma once

#include <vector>

#include "common/http/router.hpp"
#include "control-plane/accounts/caller_routes.hpp"

namespace gitops::control_plane_server {

// Adds the routes by which an administrator of the installation manages accounts and users, as Terraform sends them:
//
//   GET, POST  /api/admin/accounts                  all accounts, or those with filter[name]; {"name"} makes one
//   GET        /api/admin/accounts/{id}             DELETE is refused: the data of an account are not removed by a request
//   POST       /api/admin/accounts/addpendinguser   {"userName","email","account":[id]}: invites
//   GET        /api/admin/user                      {"docs":[…]}, by limit and page
//   GET        /api/admin/user/id/{id}
//   DELETE     /api/admin/user/{name}
//   GET        /api/admin/user/loginAsUser          refused: users cannot act as other users
void add_installation_routes(const UserContext& context, std::vector<http::Route>& routes);

}  // namespace gitops::control_plane_server
