#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "k8s-client/client.hpp"
#include "support/run_coro.hpp"

// The behaviour of an API server that k8s::Client and LeaseElection rely on: one list of cases for
// the double (tests/contract) and for the real server (tests/peers).
namespace gitops::test {

// An API server as the cases use it.
struct KubeClientPeer {
  k8s::ClusterConfig config;     // of a user who may do everything
  k8s::ClusterConfig powerless;  // of a user without permissions
  k8s::ClusterConfig unknown;    // with a token that the server does not know
  std::string ns;                // exists; used by this case alone
};

struct KubeClientCase {
  const char* name;
  std::function<Task<>(const KubeClientPeer&)> run;
};
std::vector<KubeClientCase> kube_client_cases();

}  // namespace gitops::test
