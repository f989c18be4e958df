#pragma once

#include <map>
#include <string>
#include <string_view>

#include "app-proxy/images/image_report.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"

// Credentials of the runtime for the tasks of a report, used when the client names an integration
// or sends none. Pure.
//
// The client's own variables of the same kind are removed first. Otherwise a client could name its
// own host, which would receive the credentials.
namespace gitops::app_proxy {

// An integration with another tool, as stored in the cluster (sealing/tool_integration.hpp).
struct StoredIntegration {
  std::string name;
  std::string type;                      // "registry.ecr", "issue.jira"
  std::map<std::string, Secret> values;  // of the ConfigMap and of the Secret
};
// Parses a stored integration. `secret` is empty when there is none.
StoredIntegration stored_integration(std::string_view name, std::string_view config_map,
                                     std::string_view secret);

// Adds a registry's credentials. `invalid_argument` when it is not a registry, or lacks required
// values.
Result<void> use_registry(ImageReport& report, const StoredIntegration& integration);
// Adds an issue tracker's credentials, with the same errors.
Result<void> use_issue_tracker(ImageReport& report, const StoredIntegration& integration);
// Makes the task ask the control plane for an integration that the runtime does not have.
void use_issue_tracker_of_control_plane(ImageReport& report, std::string_view name);

// Checks whether the client sent what the task needs to authenticate to its Git host.
bool has_git_credentials(const ImageReport& report);
struct GitHostAccess {
  std::string provider = {};  // as the control plane writes it: "GITHUB", "BITBUCKET_SERVER"
  std::string api_url = {};
  std::string username = {};
  Secret token = {};
};
// Adds the host's credentials. `invalid_argument` when the client names another provider, or the
// task does not know this one.
Result<void> use_git_host(ImageReport& report, const GitHostAccess& host);

}  // namespace gitops::app_proxy
