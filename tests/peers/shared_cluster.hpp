#pragma once

#include "support/peer_cluster.hpp"

namespace gitops::test {

/// The one cluster of this process, without Argo CD: started by the first call, torn down at exit.
/// Call it on the main thread.
inline PeerCluster& shared_cluster() {
  static PeerCluster cluster;
  return cluster;
}

}  // namespace gitops::test
