#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/http/router.hpp"

namespace gitops::app_proxy {

// Returns a request's path without the prefix /app-proxy, which proxies in front keep, and without
// doubled and trailing slashes.
std::string canonical_path(std::string_view path);

// Response of the form {"statusCode":400,"message":"…","error":"Bad Request"}, which clients of the
// REST routes expect.
http::Response rest_error(int status, std::string_view message);
// Returns the status for a request whose body could not be read: 413, 400 for a malformed one, or
// 408 for one that did not arrive in time.
int status_of_unread_body(const Error& error);

// Handlers of the routes.
struct RouteHandlers {
  http::RouteHandler graphql;         // POST
  http::RouteHandler graphql_opened;  // GET: a WebSocket, or a person
  // Handlers that authenticate by themselves.
  http::RouteHandler promotion_commit = {};
  http::RouteHandler promotion_pull_request = {};
  http::RouteHandler clusters = {};
  http::RouteHandler image_report = {};
  http::RouteHandler logs = {};
  http::RouteHandler source_files = {};
  http::RouteHandler git_login = {};       // GET
  http::RouteHandler git_login_form = {};  // POST
  http::RouteHandler git_login_callback = {};
};

// All routes, by canonical path.
std::vector<http::Route> routes(RouteHandlers handlers);

// A row of the table in docs/reference/app-proxy/api.md.
struct ListedRoute {
  std::string method;
  std::string path;
  std::string purpose;
};
std::vector<ListedRoute> route_list();

}  // namespace gitops::app_proxy
