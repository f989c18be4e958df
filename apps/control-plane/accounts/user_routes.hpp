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

class AuditLog;

// The dependencies of the user routes. All of them outlive the router.
struct UserRouteContext {
  store::Database& database;
  Authenticator& authenticator;
  Login& login;
  std::string public_url = {};                // of this server, for links; empty: not known
  std::vector<std::string> own_origins = {};  // as in Authenticator::Options
  // Returns the client's address behind trusted proxies; empty: the peer's address is used.
  std::function<std::string(http::Exchange&)> client_of = {};
  AuditLog* audit = nullptr;  // null: changes and refusals are not audited
  // Called after the token of a runtime was revoked; empty: nothing else is to be done.
  std::function<void()> runtime_revoked = {};
  // Returns the address that ends a user's session at an identity provider; empty when there is none. Without the
  // function there are no providers.
  std::function<Task<std::string>(const std::string& provider)> end_session_url = {};
};

// Returns the REST routes of people: /api/user, /api/ping, login, logout and those of the other *_routes.hpp of this
// folder. Every other path below /api gets 404 in the platform's form, unless the table has a row for it.
std::vector<http::Route> user_routes(UserRouteContext context);

// Returns an error in the form of the platform's REST, {"message":…}, with our code for it ("code", as in
// common/core/error.hpp) and for 404 "statusCode":404. http::Router and every route use it, too.
http::Response api_error(int status, std::string_view message);
// Returns the same for an error of a handler. The details of internal failures appear only in the log.
http::Response api_error(const Error& error);

}  // namespace gitops::control_plane_server
