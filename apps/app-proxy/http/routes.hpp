#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/http/router.hpp"

namespace gitops::app_proxy {

// The path that a request's path stands for: without the prefix /app-proxy, which proxies in front
// pass on, and without slashes that are doubled or at the end.
std::string canonical_path(std::string_view path);

// {"statusCode":400,"message":"…","error":"Bad Request"}: the form that clients of the REST routes know.
http::Response rest_error(int status, std::string_view message);

// What answers the routes that do something.
struct RouteHandlers {
  http::RouteHandler graphql;         // POST
  http::RouteHandler graphql_opened;  // GET: a WebSocket, or a person
  // These ask by themselves who it is.
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

// The rows of the table in docs/app-proxy-api.md.
struct ListedRoute {
  std::string method;
  std::string path;
  std::string purpose;
};
std::vector<ListedRoute> route_list();

}  // namespace gitops::app_proxy
