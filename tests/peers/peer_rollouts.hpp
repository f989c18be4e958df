#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "peers/peer_cluster.hpp"
#include "peers/peer_programs.hpp"

namespace gitops::test {

/// The real controller of Argo Rollouts for a whole cluster, and its CRDs. The constructor returns
/// when it is ready; the cluster is borrowed and must outlive the object, and keeps the CRDs.
/// The controller's two ports are free ones, on all interfaces: it can't be told otherwise.
class PeerRollouts {
 public:
  static constexpr const char* kNamespace = "argo-rollouts";

  explicit PeerRollouts(PeerCluster& cluster);

  /// One line that names the missing programs; nullopt when none is missing.
  static std::optional<std::string> missing();

  /// A Rollout of four replicas as JSON: 25 % of a new image, a pause until it is promoted, 50 %, a
  /// second's pause, all. Apply it again with another image to start a canary.
  static std::string canary(const std::string& name, const std::string& image);

  /// An AnalysisRun as JSON whose one metric is a Job, which succeeds.
  static std::string job_analysis(const std::string& name);

  // What the command line tool does, on an existing Rollout:
  void promote(const std::string& ns, const std::string& name) const;        // end the pause
  void promote_fully(const std::string& ns, const std::string& name) const;  // skip all steps
  void abort(const std::string& ns, const std::string& name) const;
  void retry(const std::string& ns, const std::string& name) const;  // after an abort

  /// .status.phase of the spec as it is now; empty while the controller has not looked at it.
  std::string phase(const std::string& ns, const std::string& name) const;
  bool wait_for_phase(const std::string& ns, const std::string& name, const std::string& phase,
                      std::chrono::milliseconds timeout = std::chrono::seconds(30)) const;

  Process& process() { return programs_.at("rollouts-controller"); }

 private:
  void patch_status(const std::string& ns, const std::string& name, const std::string& patch) const;

  PeerCluster& cluster_;
  PeerPrograms programs_{"gitops-rollouts"};
};

}  // namespace gitops::test
