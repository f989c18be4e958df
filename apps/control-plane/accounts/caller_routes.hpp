#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/http/router.hpp"
#include "control-plane/accounts/scopes.hpp"
#include "control-plane/accounts/user_routes.hpp"

// Parts that the REST routes of users share: they authenticate the caller and read JSON.
namespace gitops::control_plane_server {

inline constexpr std::chrono::seconds kUserRequestLimit{15};
using UserContext = std::shared_ptr<const UserRouteContext>;

// A request of an authenticated caller.
struct CallerRequest {
  const UserRouteContext& context;
  http::Exchange& exchange;
  const http::RouteParameters& parameters;
  CallerPtr caller;
  Deadline deadline;
  std::string& audit_target;  // what the audit log says about the request's object: "name=ci"
};
using CallerHandler = std::function<Task<http::Response>(CallerRequest)>;

// Returns a handler that authenticates the caller and checks the scopes of its key, and sends the response of `handler`
// or the error. Without scopes every key is allowed.
http::RouteHandler for_callers(UserContext context, CallerHandler handler, Scopes scopes = {});

// Appends routes whose handlers get the caller, by for_callers().
class CallerRoutes {
 public:
  CallerRoutes(UserContext context, std::vector<http::Route>& routes)
      : context_(std::move(context)), routes_(routes) {}
  void add(std::string method, std::string pattern, CallerHandler handler, Scopes scopes = {});

 private:
  UserContext context_;
  std::vector<http::Route>& routes_;
};

// Returns the address of the client, behind trusted proxies.
std::string client_of(const UserRouteContext& context, http::Exchange& exchange);
http::Response json_response(const nlohmann::json& json, int status = 200);
// Returns the response for a runtime's token where a user is needed.
http::Response no_user();
// Returns the error for a caller who does not administer its account, and for a key with scopes; nothing for an
// administrator.
std::optional<Error> administration_refusal(const Caller& caller);
// Returns whether the body is declared as JSON. A form of another site cannot send this type.
bool is_json_request(const http::Headers& headers);
// Reads the body as a JSON object, or returns the response that refuses it.
Task<std::expected<nlohmann::json, http::Response>> body_object(http::Exchange& exchange);

}  // namespace gitops::control_plane_server
