#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "peers/peer_argocd.hpp"
#include "peers/peer_cluster.hpp"
#include "support/git_server.hpp"

namespace gitops::test {

/// The real programs most tests share: a cluster, a Git server and Argo CD. Tests keep apart by
/// names of their own for namespaces, repositories and Applications.
class PeerBed {
 public:
  /// Starts everything (about ten seconds); throws when a program doesn't come up.
  explicit PeerBed(ArgoCdRelease release = ArgoCdRelease::v3_2, PeerClusterOptions options = {});

  /// What this machine lacks for the bed, in one line; nullopt: nothing.
  static std::optional<std::string> missing(ArgoCdRelease release = ArgoCdRelease::v3_2);

  PeerCluster& cluster() { return cluster_; }
  GitServer& git() { return git_; }
  PeerArgoCd& argocd() { return argocd_; }

  std::chrono::milliseconds cluster_start_time() const { return cluster_start_time_; }
  std::chrono::milliseconds start_time() const { return start_time_; }

 private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  GitServer git_;
  PeerCluster cluster_;
  std::chrono::milliseconds cluster_start_time_;
  PeerArgoCd argocd_;
  std::chrono::milliseconds start_time_;
};

/// The one bed of this process: started by the first call, which decides about the release and
/// the cluster, torn down at exit. When the start fails every call throws what the first one did. Call
/// it on the main thread.
PeerBed& peer_bed(ArgoCdRelease release = ArgoCdRelease::v3_2, PeerClusterOptions options = {});

}  // namespace gitops::test

/// First line of a test that needs the bed: skips it, with the reason, where a peer is missing.
#define GITOPS_REQUIRE_PEERS() GITOPS_REQUIRE_PEER(PeerBed)
