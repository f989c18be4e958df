#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/http/router.hpp"
#include "control-plane/accounts/user_routes.hpp"
#include "control-plane/runtimes/runtime_store.hpp"

// The way of the console's pages to runtimes: the origins that they may ask, and tokens for them.
namespace gitops::control_plane_server {

// Most bytes of the origins in the policy of a page. Proxies limit the fields of a response, some of them to 4 KiB.
inline constexpr std::size_t kMaxPageOrigins = 2'048;

// Returns the origin of a runtime's registered address, "https://prod.example"; empty when a browser must not use it: it
// has a path, a query or a user, or is not https. `allows_http`: the console itself is at http. The result has no
// characters that mean something in a Content-Security-Policy.
std::string browser_origin(std::string_view ingress_host, bool allows_http);

// Returns the distinct origins of runtimes, that of the runtime `first` before the others, in kMaxPageOrigins.
std::vector<std::string> browser_origins(const std::vector<RuntimeRow>& runtimes,
                                         std::string_view first, bool allows_http);

// Returns the runtime that the path of a page names, "/applications/prod/…" or "/runtimes/prod", or an empty text.
std::string_view runtime_of_page(std::string_view path);

// Returns the function that finds the origins for the page that a request asks for. Without a session, and when the
// database does not answer soon, there are none. A link on a page of another site opens the console, so that its cookie
// counts here.
std::function<Task<std::vector<std::string>>(http::Exchange&)> page_origins(
    UserRouteContext context);

// Serves POST /console/api/v1/runtimes/{name}/token: a page token for the page of a session (accounts/page_tokens.hpp),
// with the origin of the runtime. 409: the runtime has no address for browsers.
std::vector<http::Route> page_access_routes(UserRouteContext context);

}  // namespace gitops::control_plane_server
