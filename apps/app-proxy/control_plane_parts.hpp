#pragma once

#include <string>

#include "app-proxy/config.hpp"
#include "app-proxy/identity/runtime_identity.hpp"
#include "app-proxy/users/directory.hpp"
#include "app-proxy/users/rules.hpp"
#include "common/control_plane/graphql.hpp"
#include "common/core/credential.hpp"
#include "common/daemon/daemon.hpp"
#include "common/http/client.hpp"
#include "common/net/resolve.hpp"

namespace gitops::app_proxy {

// Client of the control plane, and the data that comes from it: the runtime, the account with its
// users, and the account's rules. Starts at once. Loop thread; `names` outlives it.
struct ControlPlaneParts {
  ControlPlaneParts(const DaemonContext& context, const Config& config, net::Resolver& names,
                    const http::ProxySettings& proxy);

  Task<> stop();
  // Error of rules that are not usable; empty when all are.
  [[nodiscard]] std::string rules_error() const;
  // Entries for /statusz.
  [[nodiscard]] StatusReport status() const;

  std::string url;  // base URL, without a trailing slash
  RuntimeIdentity identity;
  Credential user_token;  // registers the runtime; empty: others register it
  http::Client http;
  control_plane::GraphqlClient client;
  UserDirectory users;
  Rules rules;
};

}  // namespace gitops::app_proxy
