#pragma once

#include "peers/peer_cluster.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"

namespace gitops::test {

// The one cluster of this process, without Argo CD, and what tests share on it: each is started by
// the first call, which belongs on the main thread, and torn down at exit.

inline PeerCluster& shared_cluster() {
  static PeerCluster cluster;
  return cluster;
}

inline PeerRollouts& shared_rollouts() {
  static PeerRollouts rollouts(shared_cluster());
  return rollouts;
}

/// With both kinds of API server.
inline PeerWorkflows& shared_workflows() {
  static PeerWorkflows workflows(shared_cluster(),
                                 {PeerWorkflows::Auth::client, PeerWorkflows::Auth::server});
  return workflows;
}

}  // namespace gitops::test
