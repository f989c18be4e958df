#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "peers/peer_cluster.hpp"
#include "peers/peer_programs.hpp"

namespace gitops::test {

/// The real controller of Argo Workflows for a whole cluster, its CRDs (the minimal ones, which
/// check no schema), and any of its API servers. Steps with containers succeed by the cluster's
/// simulated node, without outputs. The constructor returns when all are ready; the cluster is
/// borrowed and must outlive the object, and keeps the CRDs.
///
/// The API servers listen on free ports of all interfaces. The controller wants port 6060 there for
/// its health and does without when another one has it.
class PeerWorkflows {
 public:
  static constexpr const char* kNamespace = "argo";
  /// Where the API servers believe that clients see them.
  static constexpr const char* kPrefix = "/workflows/";

  /// How an API server tells who calls. client: by the token of the call, a Kubernetes one, over
  /// TLS with a certificate of the cluster's authority. server: it does not, everybody is the
  /// administrator; plain http.
  enum class Auth : std::uint8_t { client, server };

  explicit PeerWorkflows(PeerCluster& cluster, std::set<Auth> servers = {Auth::server});

  /// One line that names the missing programs; nullopt when none is missing.
  static std::optional<std::string> missing();

  /// The API server with this authentication, which the constructor was asked for; no slash at the
  /// end.
  const std::string& url(Auth auth) const { return urls_.at(auth); }

  /// One request to an API server, JSON both ways; a token only for Auth::client.
  HttpReply request(Auth auth, const std::string& method, const std::string& path,
                    const std::string& body = {}, const std::string& token = {}) const;

  /// Creates a Workflow through the Kubernetes API from its spec as JSON.
  void submit(const std::string& ns, const std::string& name, const std::string& spec) const;

  /// Specs: one step with a container; one step that waits until somebody resumes it.
  static std::string one_step();
  static std::string one_wait();

  /// .status.phase; empty while the controller has not looked at it.
  std::string phase(const std::string& ns, const std::string& name) const;
  bool wait_for_phase(const std::string& ns, const std::string& name, const std::string& phase,
                      std::chrono::milliseconds timeout = std::chrono::seconds(30)) const;

  Process& controller() { return programs_.at("workflow-controller"); }

 private:
  void start_controller();
  void start_server(Auth auth);

  PeerCluster& cluster_;
  PeerPrograms programs_{"gitops-workflows"};
  std::map<Auth, std::string> urls_;
};

}  // namespace gitops::test
