#pragma once

#include <map>
#include <string>
#include <string_view>

#include "app-proxy/images/image_report.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"

// The credentials of the runtime that the tasks of a report get, where the client names an integration or gives none.
// Pure.
//
// The client's own variables of the same kind are dropped first. Otherwise a client could name a host of its own, which
// would receive the credentials.
namespace gitops::app_proxy {

// An integration with another tool as it lies in the cluster (sealing/tool_integration.hpp).
struct StoredIntegration {
  std::string name;
  std::string type;                      // "registry.ecr", "issue.jira"
  std::map<std::string, Secret> values;  // of the ConfigMap and of the Secret
};
// `secret` is empty when there is none.
StoredIntegration stored_integration(std::string_view name, std::string_view config_map,
                                     std::string_view secret);

// invalid_argument when it is no registry, or its values do not suffice.
Result<void> use_registry(ImageReport& report, const StoredIntegration& integration);
// The same for issues.
Result<void> use_issue_tracker(ImageReport& report, const StoredIntegration& integration);
// The task asks the control plane for an integration that the runtime does not have.
void use_issue_tracker_of_control_plane(ImageReport& report, std::string_view name);

// Whether the client gave what the task needs to enter its Git host.
bool has_git_credentials(const ImageReport& report);
struct GitHostAccess {
  std::string provider = {};  // as the control plane writes it: "GITHUB", "BITBUCKET_SERVER"
  std::string api_url = {};
  std::string username = {};
  Secret token = {};
};
// invalid_argument when the client names another provider, or the task does not know this one.
Result<void> use_git_host(ImageReport& report, const GitHostAccess& host);

}  // namespace gitops::app_proxy
