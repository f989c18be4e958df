#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control-plane/accounts/identity.hpp"
#include "control-plane/runtimes/runtime_store.hpp"

namespace gitops::control_plane_server {

// What the GraphQL type Runtime says besides the runtime's own row.
struct RuntimeFacts {
  const Account& account;
  std::vector<RuntimeApplication> applications = {};  // of this runtime
  ClusterCounts clusters = {};
  std::vector<std::string> managed_clusters = {};  // JSON of type Cluster
  std::string_view tunnel_domain = {};             // below it lie the hosts of tunnels; empty: none
  Micros now = 0;
};

// The JSON of the GraphQL type Runtime. No text of a runtime makes an enum null or another word than the schema's: the
// public SDK would then decode no runtime of the account.
std::string runtime_json(const RuntimeRow& runtime, const RuntimeFacts& facts);

// The provider's word as the public SDK knows it; empty for any other.
std::string_view public_git_provider(std::string_view provider);

}  // namespace gitops::control_plane_server
