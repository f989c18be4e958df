#include "app-proxy/resolvers/version.hpp"

namespace gitops::app_proxy {

void add_version_types(graphql::Resolvers& to) {
  to.type<VersionInfo>("AppProxyVersionInfo",
                       {
                           {"version", &VersionInfo::version},
                           {"platformHost", &VersionInfo::platform_host},
                           {"platformVersion", &VersionInfo::platform_version},
                       });
}

}  // namespace gitops::app_proxy
