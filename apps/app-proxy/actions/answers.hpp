#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "app-proxy/errors/client_codes.hpp"
#include "app-proxy/users/caller.hpp"
#include "common/core/error.hpp"
#include "common/http/client.hpp"

// Results and refusals that all actions share.
namespace gitops::app_proxy {

// Outcome of an action. When the object already is as wanted, nothing changes and `note` says so.
struct Outcome {
  bool changed = true;
  std::string note = {};
};

// Checks, from time to time while a stream is open, that the user may still read it.
using StillAllowed = std::function<Result<void>(const User&)>;

// Logs of an Argo server, opened for a user.
struct OpenedLogs {
  http::ClientExchange exchange;
  StillAllowed is_allowed;
};

// A refusal: the user may not do this, or the object does not exist. Clients cannot tell which.
Error forbidden_action(std::string message);

// Checks that a text is a valid name of a Kubernetes object or namespace (RFC 1123 subdomain),
// since it becomes a part of a path. `what` names the argument.
Result<void> check_object_name(std::string_view what, std::string_view name);

// Converts an error of `peer`, an Argo server or the API server, for clients. A 401 or 403 of the
// peer concerns the runtime and not the caller, so it goes to the log.
Error public_action_error(Error error, std::string_view peer);

}  // namespace gitops::app_proxy
