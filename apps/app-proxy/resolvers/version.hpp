#pragma once

#include <string>

#include "common/graphql/resolvers.hpp"

namespace gitops::app_proxy {

// Result of versionInfo.
struct VersionInfo {
  std::string version;           // of this program
  std::string platform_host;     // base URL of the control plane
  std::string platform_version;  // of the control plane's API that this program was built for
};

void add_version_types(graphql::Resolvers& to);

}  // namespace gitops::app_proxy
