#include "request-router/webhook_target.hpp"

#include <algorithm>

namespace gitops::router {
namespace {

constexpr std::string_view kSuffix = "-eventsource-svc";
constexpr std::size_t kMaxLabel = 63;

}  // namespace

Result<std::string> webhook_host(std::string_view ns, std::string_view event_source,
                                 const WebhookRules& rules) {
  const bool listed = std::ranges::any_of(
      rules.namespaces, [ns](const std::string& name) { return name == "*" || name == ns; });
  if (!listed) return fail(ErrorCode::forbidden, "webhooks of this namespace are not served");
  if (event_source.size() + kSuffix.size() > kMaxLabel) {
    return fail(ErrorCode::not_found, "no such event source");
  }
  std::string host(event_source);
  host.append(kSuffix).append(".").append(ns).append(".svc.").append(rules.cluster_domain);
  return host;
}

}  // namespace gitops::router
