#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/thread_pool.hpp>
#include <nlohmann/json.hpp>

#include "common/core/async.hpp"
#include "daemons/app_proxy_process.hpp"
#include "daemons/router_harness.hpp"
#include "daemons/tunnel_processes.hpp"
#include "demo/plane.hpp"
#include "demo/world.hpp"
#include "faults/reporter_pod.hpp"
#include "support/git_server.hpp"
#include "support/tcp_relay.hpp"
#include "support/test_certs.hpp"

namespace gitops::test {

// The parts of the suite that are ours, as faults name them.
namespace part {
inline constexpr const char* kReporter = "event-reporter";
inline constexpr const char* kPlane = "control-plane";
inline constexpr const char* kAppProxy = "app-proxy";
inline constexpr const char* kRouter = "request-router";
inline constexpr const char* kTunnelServer = "tunnel-server";
inline constexpr const char* kTunnelClient = "tunnel-client";
inline constexpr std::array kAll{kReporter, kPlane,        kAppProxy,
                                 kRouter,   kTunnelServer, kTunnelClient};
}  // namespace part

// The network between two parts, in the direction of its connections.
struct SuiteLink {
  std::string from;
  std::string to;
  std::uint16_t port = 0;     // that `from` connects to
  TcpRelay* relay = nullptr;  // null: it connects to `to` itself
  bool is_tls = false;        // so that nobody between can answer

  [[nodiscard]] std::string name() const { return from + " to " + to; }
};

// The whole suite as processes, on the world of the demo (doubles, or the real Kubernetes and Argo CD), with a relay
// between any two of its parts. Each part keeps its address when it is started again. Main thread, which runs the loop;
// call stop() before the destructor.
class SuiteBed {
 public:
  static constexpr const char* kRuntime = "demo";

  // Without relays, for measurements, no link can have a fault, and there is no event-reporter.
  enum class Network : std::uint8_t { relays, direct };
  SuiteBed(const Executor& executor, demo::World& world, GitServer& git,
           Network network = Network::relays);

  // Starts all but the event-reporter. The runtime has registered itself, and its users reach it, when this returns.
  Task<> start();
  void start_reporter() { reporter_->start(1); }
  Task<> stop();
  // The end of each part's log.
  [[nodiscard]] std::string logs();

  // kill -9, SIGTERM with its end, and the start of the part again.
  void kill(std::string_view name);
  Task<> terminate(std::string name);
  Task<> start_again(std::string_view name);
  // Whether the event-reporter is ready and the tunnel serves.
  Task<bool> are_all_ready();
  // The text of /metrics of a part; empty when it does not answer.
  Task<std::string> metrics(std::string name);

  // -- faults --
  [[nodiscard]] std::vector<SuiteLink>& links() { return links_; }
  ReporterPod& reporter() { return *reporter_; }
  // Makes the control plane's writes to its files fail, or work again.
  void limit_plane_files(bool is_limited);
  Task<> back_up_plane();
  // Kills the control plane, and starts it with the database of back_up_plane().
  Task<> restore_plane();

  // -- use --
  demo::World& world() { return world_; }
  demo::Plane& plane() { return *plane_; }
  GitServer& git() { return git_; }
  asio::thread_pool& pool() { return pool_; }
  // The control plane as an open page reaches it.
  [[nodiscard]] http::Url page_url() const;
  // Where users reach the tunnel-server, which serves the runtime by this host name.
  [[nodiscard]] std::uint16_t user_port() const;
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] const std::filesystem::path& ca_file() const { return authority_.ca_file(); }
  [[nodiscard]] std::uint16_t app_proxy_port() const { return app_proxy_port_; }
  // The token of the runtime.
  [[nodiscard]] const std::string& token() const { return token_; }

 private:
  void link(const std::string& from, const std::string& to, std::uint16_t port,
            bool is_tls = false);
  // The port by which a part reaches another one.
  [[nodiscard]] std::uint16_t port(std::string_view from, std::string_view to) const;
  void make_reporter();
  // Null when it was never started.
  [[nodiscard]] Process* process(std::string_view name);
  void start_app_proxy();
  void start_router();
  void start_tunnel_client();
  Task<> wait_for_registration();
  [[nodiscard]] std::string kubeconfig_through(std::uint16_t port) const;

  demo::World& world_;
  GitServer& git_;
  Executor executor_;
  Network network_;
  asio::thread_pool pool_{2};
  TempDir folder_{"gitops-suite"};
  CertificateAuthority authority_;
  std::deque<TcpRelay> relays_;
  std::vector<SuiteLink> links_;
  const std::uint16_t app_proxy_port_ = static_cast<std::uint16_t>(free_port());
  const std::uint16_t router_port_ = static_cast<std::uint16_t>(free_port());
  std::string token_;  // of the runtime
  std::string prefix_;
  std::string host_;
  std::optional<demo::Plane> plane_;
  std::optional<ReporterPod> reporter_;
  std::optional<AppProxyProcess> app_proxy_;
  std::optional<RouterProcess> router_;
  std::optional<OwnTunnelServer> tunnel_server_;
  std::optional<OwnTunnelClient> tunnel_client_;
};

}  // namespace gitops::test
