#pragma once

#include <string>
#include <string_view>

#include "common/proxy/head.hpp"

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

// The meaning of a request's target. Slices are of the head.
struct RouteMatch {
  RouteKind kind = RouteKind::none;
  int status = 0;                // not 0: refused with this status
  std::string_view reason = {};  // of the refusal
  // What is forwarded, or redirected to: as it was received, unless `rewritten` holds something.
  std::string_view target = {};
  std::string rewritten = {};
  std::string_view ns = {};            // of a webhook: a label of RFC 1123
  std::string_view event_source = {};  // the same
};

// The one place where targets are interpreted; what is matched here is what is forwarded.
//
// Prefixes end at a segment. Escapes of characters that need none are decoded ("/app%2Dproxy"
// becomes "/app-proxy"); all others are kept. Refused with 400: dot segments (but for plain ones
// below /workflows/, which are resolved as long as they stay there), also when dots or slashes are
// escaped or a parameter hides them, backslashes, malformed escapes, escaped control characters.
// The two segments of a webhook are taken only as RFC 1123 labels before any decoding; everything
// else there is 404.
RouteMatch match_route(const proxy::RequestHead& head);

// A label of a DNS name as RFC 1123 has it, lower case, at most 63 characters.
bool is_dns_label(std::string_view text);

}  // namespace gitops::router
