#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "app-proxy/errors/client_codes.hpp"
#include "app-proxy/users/caller.hpp"
#include "common/core/error.hpp"
#include "common/http/client.hpp"

// What the actions share: their answers and their refusals.
namespace gitops::app_proxy {

// The outcome of an action. Nothing is changed when the object is already as wanted; `note` says so.
struct Outcome {
  bool changed = true;
  std::string note = {};
};

// Asked now and then while a stream is open: whether the user may still read it.
using StillAllowed = std::function<Result<void>(const User&)>;

// Logs of an Argo server that were opened for a user.
struct OpenedLogs {
  http::ClientExchange exchange;
  StillAllowed is_allowed;
};

// The user may not do this, or there is no such object: the two are not told apart.
Error forbidden_action(std::string message);

// Whether a text can be the name of a Kubernetes object or namespace (RFC 1123 subdomain): it becomes a
// part of a path. `what` names the argument.
Result<void> check_object_name(std::string_view what, std::string_view name);

// An error of `peer`, an Argo server or the API server, as clients may see it. Its 401 and 403 concern
// the runtime, not the caller: the log tells them.
Error public_action_error(Error error, std::string_view peer);

}  // namespace gitops::app_proxy
