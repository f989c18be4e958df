#pragma once

#include <string>
#include <string_view>

#include "common/http/head.hpp"

namespace gitops::router {

enum class RouteKind {
  none,                // 404, unless `status` says otherwise
  health,              // /healthz
  ready,               // /readyz
  app_proxy,           // /app-proxy, /app-proxy/…
  workflows_redirect,  // /workflows -> /workflows/
  workflows,           // /workflows/…
  webhook,             // /webhooks/<namespace>/<event source>…
};

// Route of a request's target. Slices are of the head.
struct RouteMatch {
  RouteKind kind = RouteKind::none;
  int status = 0;                // not 0: status of a refusal
  std::string_view reason = {};  // of the refusal
  // Target to forward or redirect to, as it was received; `rewritten` replaces it unless empty.
  std::string_view target = {};
  std::string rewritten = {};
  std::string_view ns = {};            // of a webhook: a label of RFC 1123
  std::string_view event_source = {};  // of a webhook: a label of RFC 1123
};

// Interprets the target of a request, in one place: the matched path is the forwarded path.
//
// Prefixes end at a segment. Escapes of unreserved characters are decoded ("/app%2Dproxy" becomes
// "/app-proxy"); all others are kept. Refused with 400: dot segments, even with escaped dots or
// slashes or with parameters, backslashes, malformed escapes, and escaped control characters. Plain
// dot segments below /workflows/ are resolved if they stay there. The two segments of a webhook
// must be RFC 1123 labels before decoding; anything else there is 404.
RouteMatch match_route(const http::RequestHead& head);

// Returns whether the text is a DNS label of RFC 1123: lower case, at most 63 characters.
bool is_dns_label(std::string_view text);

}  // namespace gitops::router
