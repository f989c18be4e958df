#include "control-plane/http/routes.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "control-plane/accounts/user_routes.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::string_view kAnyone = "anyone";
constexpr std::string_view kUser = "user";
constexpr std::string_view kMember = "user or runtime";
constexpr std::string_view kRuntime = "runtime";

constexpr ListedRoute kRoutes[] = {
    {"POST", "/2.0/api/graphql", "by field", "GraphQL: the operations below"},
    {"POST", "/2.0/api/events", kRuntime, "an event of a reporter"},
    {"POST", "/2.0/api/events/event-payload", kRuntime, "a CloudEvent of a Git webhook"},
    {"POST", "/2.0/api/events/error", kRuntime, "an error of an event source"},
    {"POST", "/2.0/api/events/inventory", kRuntime,
     "what exists, after the database went back in time"},
    {"GET", "/api/ping", kAnyone, "liveness of the server"},
    {"GET", "/api/user", kUser, "the login of the command line: the user and its accounts"},
    {"POST", "/api/user/changeaccount/{id}", kUser, "makes another account the active one"},
    {"GET", "/api/team", kMember, "the teams of the account and their users"},
    {"POST", "/api/auth/key", kUser, "makes an API key, which the response shows once"},
    {"GET", "/api/auth/keys", kUser, "the caller's keys"},
    {"GET", "/api/auth/key/{id}", kUser, "one key"},
    {"PATCH", "/api/auth/key/{id}", kUser, "changes its name or scopes"},
    {"DELETE", "/api/auth/key/{id}", kUser, "revokes it"},
    {"GET", "/console/api/v1/sign-in", kAnyone,
     "the ways to log in: by password, and at which identity providers"},
    {"GET", "/console/api/v1/sso/{name}", kAnyone, "begins a login at an identity provider"},
    {"GET", "/api/auth/{name}/callback", kAnyone, "ends it: the provider sends the browser here"},
    {"POST", "/console/api/v1/login", kAnyone, "begins a session with a name and a password"},
    {"POST", "/console/api/v1/logout", kAnyone, "ends the session"},
    {"POST", "/console/api/v1/password", kUser, "changes the caller's password"},
    {"GET", "/console/api/v1/users", "admin", "the users of the account"},
    {"PATCH", "/console/api/v1/users/{id}", "admin", "disables a user, or enables it again"},
    {"PUT", "/console/api/v1/users/{id}/password", "admin", "resets a password"},
    {"GET", "/console/api/v1/audit", "admin", "the audit log of the account, as JSON or CSV"},
    {"POST", "/tunnel-plugin", "tunnel server", "authorises a tunnel client for a host"},
    {"POST", "/tunnel-plugin/{token}", "tunnel server", "the same, for frp's own server"},
};

}  // namespace

std::span<const ListedRoute> route_list() {
  return kRoutes;
}

std::vector<http::Route> all_routes(GraphqlGate& graphql,
                                    std::vector<std::vector<http::Route>> parts) {
  std::vector<http::Route> routes;
  for (auto& part : parts) std::ranges::move(part, std::back_inserter(routes));
  // The gate authenticates the caller itself and checks permissions by field.
  routes.push_back(
      {.method = "POST",
       .pattern = "/2.0/api/graphql",
       .guard = http::open_to_all(),
       .handler = [&graphql](http::Exchange& exchange,
                             const http::RouteParameters&) { return graphql.serve(exchange); },
       .max_body = graphql.max_body()});
  for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    routes.push_back({.method = method,
                      .pattern = "/2.0/api/{rest...}",
                      .guard = http::open_to_all(),
                      .handler = http::answer_with([](const http::Exchange& exchange, const auto&) {
                        return api_error(404, "There is no " + exchange.request().method + " " +
                                                  std::string(exchange.path()) +
                                                  " on this server.");
                      })});
  }
  return routes;
}

}  // namespace gitops::control_plane_server
