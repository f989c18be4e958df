#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"

namespace gitops::router {

// Allowed destinations of webhooks.
struct WebhookRules {
  std::vector<std::string> namespaces;  // "*": all
  std::string cluster_domain = "cluster.local";
};

// Returns the host of the Service that Argo Events creates for an event source. Both names are DNS
// labels. Errors: forbidden, if the namespace is not listed; not_found, if no such Service can
// exist.
Result<std::string> webhook_host(std::string_view ns, std::string_view event_source,
                                 const WebhookRules& rules);

}  // namespace gitops::router
