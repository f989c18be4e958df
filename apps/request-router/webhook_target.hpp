#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"

namespace gitops::router {

// Where webhooks may go.
struct WebhookRules {
  std::vector<std::string> namespaces;  // "*": every one
  std::string cluster_domain = "cluster.local";
};

// The host of the Service that Argo Events makes for an event source: forbidden when its namespace
// is not listed, not_found when there can be no such Service. Both names are DNS labels.
Result<std::string> webhook_host(std::string_view ns, std::string_view event_source,
                                 const WebhookRules& rules);

}  // namespace gitops::router
