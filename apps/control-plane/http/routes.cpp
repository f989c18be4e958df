#include "control-plane/http/routes.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "control-plane/accounts/audit_routes.hpp"
#include "control-plane/accounts/user_routes.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::string_view kAnyone = "anyone";
constexpr std::string_view kUser = "user";  // or a service account
constexpr std::string_view kPerson = "user with a session";
constexpr std::string_view kKeyMaker = "user, or admin service account";
constexpr std::string_view kMember = "user or runtime";
constexpr std::string_view kRuntime = "runtime";
constexpr std::string_view kAdmin = "admin";
constexpr std::string_view kSystemAdmin = "system admin";

constexpr ListedRoute kRoutes[] = {
    {"POST", "/2.0/api/graphql", "by field", "GraphQL: the operations below"},
    {"GET", "/2.0/api/broadcaster/graphql", "by field", "GraphQL subscriptions by WebSocket"},
    {"POST", "/2.0/api/events", kRuntime, "an event of a reporter"},
    {"POST", "/2.0/api/events/event-payload", kRuntime, "a CloudEvent of a Git webhook"},
    {"POST", "/2.0/api/events/error", kRuntime, "an error of an event source"},
    {"POST", "/2.0/api/events/inventory", kRuntime,
     "what exists, after the database went back in time"},
    {"GET", "/api/ping", kAnyone, "liveness of the server"},
    {"GET", "/api/user", kUser, "the login of the command line: the user and its accounts"},
    {"POST", "/api/user/changeaccount/{id}", kPerson, "makes another account the active one"},
    {"GET", "/api/team", kMember, "the teams of the account and their users"},
    {"POST", "/api/team", kAdmin, "makes a team"},
    {"DELETE", "/api/team/{id}", kAdmin, "removes a team that is not built in"},
    {"PUT", "/api/team/{id}/renameTeam", kAdmin, "renames it"},
    {"PUT", "/api/team/{id}/{user}/assignUserToTeam", kAdmin, "puts a user into it"},
    {"PUT", "/api/team/{id}/{user}/deleteUserFromTeam", kAdmin, "takes a user out of it"},
    {"GET", "/api/team/group/synchronize/name/{client}/type/{type}", kAdmin,
     "refused: there are no groups to synchronise with"},
    {"GET", "/api/accounts/{id}/users", kAdmin, "the users of the account, pending ones too"},
    {"POST", "/api/accounts/{id}/adduser", kAdmin,
     "invites a user; the response shows the link once"},
    {"DELETE", "/api/accounts/{id}/{user}", kAdmin,
     "removes a user from the account, or withdraws its invitation"},
    {"POST", "/api/accounts/{id}/{user}/updateuser", kAdmin,
     "changes the name and the address of a user"},
    {"POST", "/api/accounts/{id}/{user}/admin", kAdmin, "makes a user an administrator"},
    {"DELETE", "/api/accounts/{id}/{user}/admin", kAdmin, "makes an administrator a user again"},
    {"GET", "/api/admin/accounts", kSystemAdmin, "all accounts"},
    {"POST", "/api/admin/accounts", kSystemAdmin, "makes an account"},
    {"POST", "/api/admin/accounts/addpendinguser", kSystemAdmin, "invites a user to an account"},
    {"GET", "/api/admin/accounts/{id}", kSystemAdmin, "one account"},
    {"DELETE", "/api/admin/accounts/{id}", kSystemAdmin,
     "refused: the data of an account are not removed by a request"},
    {"GET", "/api/admin/user", kSystemAdmin, "all users, by page"},
    {"GET", "/api/admin/user/id/{id}", kSystemAdmin, "one user, also a pending one"},
    {"DELETE", "/api/admin/user/{name}", kSystemAdmin,
     "removes a user from the installation, or withdraws its invitation"},
    {"GET", "/api/admin/user/loginAsUser", kSystemAdmin,
     "refused: nobody acts as another user; service accounts have keys"},
    {"POST", "/api/auth/key", kKeyMaker, "makes an API key, which the response shows once"},
    {"GET", "/api/auth/keys", kUser, "the caller's keys"},
    {"GET", "/api/auth/key/{id}", kUser, "one key"},
    {"PATCH", "/api/auth/key/{id}", kKeyMaker, "changes its name or scopes"},
    {"DELETE", "/api/auth/key/{id}", kKeyMaker, "revokes it"},
    {"POST", "/api/auth/key/service-user/{id}", kAdmin, "makes an API key of a service account"},
    {"GET", "/api/auth/key/service-user/{id}", kAdmin, "the keys of a service account"},
    {"GET", "/api/auth/key/service-user/{id}/{key}", kAdmin, "one of them"},
    {"PATCH", "/api/auth/key/service-user/{id}/{key}", kAdmin, "changes its name or scopes"},
    {"DELETE", "/api/auth/key/service-user/{id}/{key}", kAdmin, "revokes it"},
    {"GET", "/api/service-users", kAdmin, "the service accounts of the account"},
    {"POST", "/api/service-users", kAdmin, "makes a service account"},
    {"GET", "/api/service-users/{id}", kAdmin, "one service account"},
    {"PATCH", "/api/service-users/{id}", kAdmin, "changes, disables or enables it"},
    {"DELETE", "/api/service-users/{id}", kAdmin, "removes it and its keys"},
    {"GET", "/console/api/v1/sign-in", kAnyone,
     "the ways to log in: by password, and at which identity providers"},
    {"GET", "/console/api/v1/sso/{name}", kAnyone, "begins a login at an identity provider"},
    {"GET", "/api/auth/{name}/callback", kAnyone, "ends it: the provider sends the browser here"},
    {"POST", "/console/api/v1/login", kAnyone, "begins a session with a name and a password"},
    {"POST", "/console/api/v1/logout", kAnyone, "ends the session"},
    {"GET", "/console/api/v1/invitation", kAnyone, "what the token of an invitation is for"},
    {"POST", "/console/api/v1/invitation", kAnyone, "accepts an invitation, and begins a session"},
    {"POST", "/console/api/v1/password", kPerson, "changes the caller's password"},
    {"GET", "/console/api/v1/users", kAdmin, "the users of the account"},
    {"PATCH", "/console/api/v1/users/{id}", kAdmin, "disables a user, or enables it again"},
    {"PUT", "/console/api/v1/users/{id}/password", kAdmin, "resets a password"},
    {"GET", "/console/api/v1/audit", kAdmin, "the audit log of the account, as JSON or CSV"},
    {"POST", "/console/api/v1/runtimes/{name}/token", kPerson,
     "a token with which the page asks a runtime"},
    {"GET", "/console/api/v1/stream", kUser, "live updates of open pages, as server-sent events"},
    {"GET", "/", kAnyone, "the console: its page at every address of it, and the files of it"},
    {"POST", "/tunnel-plugin", "tunnel server", "authorises a tunnel client for a host"},
    {"POST", "/tunnel-plugin/{token...}", "tunnel server", "the same, for frp's own server"},
};

// Lets every response have the id of its request, by which people report it.
void add_request_ids(GraphqlGate& graphql, std::vector<http::Route>& routes) {
  for (auto& route : routes) {
    route.handler = [&graphql, handler = std::move(route.handler)](
                        http::Exchange& exchange, const http::RouteParameters& parameters) {
      exchange.add_to_answer(kRequestIdField, graphql.next_request_id());
      return handler(exchange, parameters);
    };
  }
}

}  // namespace

std::span<const ListedRoute> route_list() {
  return kRoutes;
}

std::vector<http::Route> all_routes(GraphqlGate& graphql,
                                    std::vector<std::vector<http::Route>> parts,
                                    PageOrigins page_origins) {
  std::vector<http::Route> routes;
  for (auto& part : parts) std::ranges::move(part, std::back_inserter(routes));
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
  std::ranges::move(console_routes(console_assets(), std::move(page_origins)),
                    std::back_inserter(routes));
  add_request_ids(graphql, routes);
  // The gate authenticates the caller itself, checks permissions by field, and adds the id of the request.
  routes.push_back(
      {.method = "POST",
       .pattern = "/2.0/api/graphql",
       .guard = http::open_to_all(),
       .handler = [&graphql](http::Exchange& exchange,
                             const http::RouteParameters&) { return graphql.serve(exchange); },
       .max_body = graphql.max_body()});
  routes.push_back({.method = "GET",
                    .pattern = "/2.0/api/broadcaster/graphql",
                    .guard = http::open_to_all(),
                    .handler = [&graphql](http::Exchange& exchange, const http::RouteParameters&) {
                      return graphql.serve_socket(exchange);
                    }});
  return routes;
}

}  // namespace gitops::control_plane_server
