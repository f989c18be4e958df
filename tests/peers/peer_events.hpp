#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "peers/peer_cluster.hpp"
#include "peers/peer_programs.hpp"

namespace gitops::test {

/// Argo Events of real programs: a NATS server with JetStream as its bus, which speaks TLS and asks
/// for no password, the CRDs, and one process at a time that serves an EventSource. Nothing acts on
/// the objects in the cluster: the tests start what the controller would.
///
/// The process of an EventSource listens on all interfaces, with port 7777 fixed for its metrics.
/// So there is one PeerEvents at a time on a machine: the constructor waits for up to two minutes
/// until no other one is there. The cluster is borrowed and must outlive the object.
class PeerEvents {
 public:
  explicit PeerEvents(PeerCluster& cluster);

  /// One line that names the missing programs; nullopt when none is missing.
  static std::optional<std::string> missing();

  /// Creates the EventSource in the cluster, from its spec as JSON, and serves it in place of the
  /// last one. The spec has a webhook on `port`; returns when that answers. An EventBus `default`
  /// that describes the bus is made in the namespace, too.
  void serve(const std::string& ns, const std::string& name, const std::string& spec, int port);

  /// Serves an EventSource that is in the cluster, without a webhook, in place of the last one, with the
  /// permissions of this kubeconfig. Returns at once.
  void watch(const std::string& ns, const std::string& name,
             const std::filesystem::path& kubeconfig);

  /// Runs a Sensor that is in the cluster, with what its Secrets hold; needs root, for a file system of
  /// its own. Sensors and EventSources have one port in common, so it ends the EventSource, and the
  /// other way round; the bus keeps what is between them. Returns at once.
  void act(const std::string& ns, const std::string& name);
  /// Ends both.
  void rest();

  /// A spec for serve(): one event `push` of GitHub's webhooks at `target`, which asks for no
  /// signature.
  static std::string github_push(const std::string& target, int port);

  /// What the event in a message of the bus holds, as JSON; for webhooks `headers` and `body`.
  static std::string data_of(const std::string& payload);

  /// Where the bus listens, on 127.0.0.1: subjects are default.EVENTSOURCE.EVENT.
  int bus_port() const { return bus_port_; }
  std::string bus_url() const { return "nats://127.0.0.1:" + std::to_string(bus_port_); }
  /// How many messages the bus holds.
  long stored_messages() const;
  /// How many subscriptions that outlive their Sensor it holds.
  long consumers() const;

  /// Logs of the two, for failed tests.
  std::string logs() const;
  Process& event_source() { return programs_.at("eventsource"); }
  Process& bus() { return programs_.at("nats-server"); }

 private:
  class MachineLock;

  void start_bus();
  long figure_of_bus(const std::string& name) const;
  /// The variables of an EventSource or Sensor in the cluster, by which its process is started.
  Environment environment_of(const std::string& ns, const std::string& kind,
                             const std::string& name) const;

  PeerCluster& cluster_;
  std::shared_ptr<MachineLock> lock_;
  int bus_port_;
  int monitor_port_;
  PeerPrograms programs_{"gitops-events"};
};

}  // namespace gitops::test
