#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control-plane/accounts/identity.hpp"
#include "control-plane/runtimes/runtime_store.hpp"

namespace gitops::control_plane_server {

// The data of the GraphQL type Runtime besides the runtime's own row.
struct RuntimeFacts {
  const Account& account;
  std::vector<RuntimeApplication> applications = {};  // of this runtime
  ClusterCounts clusters = {};
  std::vector<std::string> managed_clusters = {};  // JSON of type Cluster
  std::string_view tunnel_domain = {};             // parent of the hosts of tunnels; empty: none
  Micros now = 0;
};

// Returns the JSON of the GraphQL type Runtime. Enums are never null and have only words of the schema, whatever a
// runtime has reported; otherwise the public SDK could not decode any runtime of the account.
std::string runtime_json(const RuntimeRow& runtime, const RuntimeFacts& facts);

// Returns the provider's word in the public SDK; empty for any other provider.
std::string_view public_git_provider(std::string_view provider);

}  // namespace gitops::control_plane_server
