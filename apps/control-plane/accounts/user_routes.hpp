#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/router.hpp"
#include "common/store/database.hpp"
#include "control-plane/accounts/authenticator.hpp"
#include "control-plane/accounts/login.hpp"

namespace gitops::control_plane_server {

// What the routes of users work with. All of it outlives the router.
struct UserRouteContext {
  store::Database& database;
  Authenticator& authenticator;
  Login& login;
  std::vector<std::string> own_origins = {};  // as in Authenticator::Options
  // The client's address, behind proxies that are trusted; empty: the peer's.
  std::function<std::string(http::Exchange&)> client_of = {};
};

// The REST of users: /api/user, /api/team, /api/auth/*, /api/ping, login and logout. Every other path below /api gets
// 404 in the platform's form, unless the table has a row for it.
std::vector<http::Route> user_routes(UserRouteContext context);

// An error as the platform's REST sends it: {"message":…}, and for 404 {"statusCode":404,"message":…}. For http::Router,
// too.
http::Response api_error(int status, std::string_view message);
// The same for an error of a handler; the details of failures of ours stay in the log.
http::Response api_error(const Error& error);

}  // namespace gitops::control_plane_server
