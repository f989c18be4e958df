#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/thread_pool.hpp>
#include <nlohmann/json.hpp>

#include "common/core/async.hpp"
#include "common/http/client.hpp"
#include "daemons/app_proxy_process.hpp"
#include "daemons/router_harness.hpp"
#include "daemons/tunnel_processes.hpp"
#include "doubles/fake_git_hosts.hpp"
#include "doubles/fake_platform.hpp"
#include "narrator.hpp"
#include "support/git_server.hpp"
#include "support/process.hpp"
#include "support/tcp_relay.hpp"
#include "support/test_certs.hpp"
#include "world.hpp"

namespace gitops::demo {

inline constexpr const char* kRepository = "shop";

// Returns the application's Deployment, as a manifest.
std::string deployment(int replicas);
std::string describe(const test::FakePlatform::Report& report);
// Describes a GitHub push webhook by the fields of its body.
std::string describe_push(const std::string& body);

// The scene: a change in Git reaches the control plane. It is the same in every world and checks
// each line before it writes it. Throws Failure.
class Scene {
 public:
  Scene(Narrator& narrator, World& world, test::GitServer& git, test::FakePlatform& platform,
        asio::thread_pool& pool, std::string daemon_program);

  // Plays the scene. `keep`: stops before the application is deleted.
  Task<> play(bool keep);
  // Follows the repository as automated sync does, until cancelled.
  Task<> follow();
  // Explains how to use the running programs.
  void print_hints();
  // Stops the running daemons with SIGTERM and expects exit code 0.
  Task<> stop_daemons();
  // The tunnel's network and the Git host. Await it before the destructor.
  Task<> stop_servers();
  // Returns the last log lines of each daemon that was started.
  [[nodiscard]] std::string daemon_logs(std::size_t lines) const;

 private:
  using Report = test::FakePlatform::Report;

  // Waits until the daemon's admin port responds to `awaited` with 200.
  Task<> start_daemon(const char* awaited);
  Task<std::string> push(test::FileChanges changes, std::string message);
  void kill_daemon();
  // Returns the first matching report after index `after`. `what` names it in a failure.
  Task<const Report*> wait_for(std::size_t after, std::string what,
                               std::function<bool(const Report&)> matches);
  // Runs a sync of Argo CD and `body` concurrently; returns when both have ended.
  Task<> while_syncing(std::string said, std::function<Task<>()> body);
  // Sends a GET to the daemon's admin port.
  Task<Result<http::Response>> ask_daemon(std::string target);
  void check(bool condition, const std::string& otherwise) const;

  Task<> stop(test::Process& daemon, std::string name);
  // Sends a GitHub webhook for the last commit, signed with the secret as GitHub does.
  Task<test::RawResponse> send_webhook(std::string secret);
  // Returns the shell command with which the user posts a GraphQL request through the tunnel, with
  // its response.
  [[nodiscard]] std::string tunnel_command(const std::string& body) const;
  Task<test::HttpReply> ask_through_tunnel(std::string body);
  // Waits until both ends of the tunnel serve, or until none does.
  Task<> wait_for_tunnel(bool serving);

  Task<> start_app_proxy();
  static std::string user_token();
  // Sends an operation with one field through the tunnel, and returns its data. Throws for an
  // error.
  Task<nlohmann::json> ask_app_proxy(std::string document, nlohmann::json variables);
  Task<nlohmann::json> application();
  Task<std::string> commit_as_user(nlohmann::json file, std::string message);
  Task<> sync_as_user();
  Task<> wait_for_operation(std::string phase);
  // Waits for the report of the Deployment with this many replicas.
  Task<const Report*> wait_for_replicas(std::size_t after, int replicas,
                                        std::string sync_status = "Synced");
  // Number of state changes that succeeded, by app-proxy's audit stream.
  [[nodiscard]] std::size_t audited() const;

  Task<> report_what_is_there();
  Task<> scale();
  Task<> remove_resource();
  Task<> send_inbound();
  Task<> tunnel();
  Task<> act();
  Task<> outage();
  Task<> change_while_away(Clock::time_point until);
  Task<> wait_until_quiet();
  Task<double> own_part();
  Task<> delete_application();
  Task<> summary(bool keep);

  Narrator& narrator_;
  World& world_;
  test::GitServer& git_;
  test::FakePlatform& platform_;
  asio::thread_pool& pool_;
  std::string daemon_program_;
  test::TempDir folder_;
  std::optional<test::Process> daemon_;
  std::unique_ptr<test::FakeGitHost> git_host_;  // REST interface for the repositories of git_
  std::unique_ptr<test::AppProxyProcess> app_proxy_;
  std::unique_ptr<test::RouterHarness> router_;
  std::unique_ptr<test::CertificateAuthority> authority_;  // of the tunnel-server
  std::unique_ptr<test::OwnTunnelServer> tunnel_server_;
  std::unique_ptr<test::TcpRelay> network_;  // between the ends of the tunnel
  std::unique_ptr<test::OwnTunnelClient> tunnel_client_;
  int main_port_ = 0;
  int admin_port_ = 0;

  std::string repository_url_;
  std::string first_revision_;
  std::string last_revision_;
  std::size_t commits_ = 0;
  // Commits, and Argo CD's reads, that belong to the outage.
  std::size_t outage_commits_ = 0;
  World::Reads outage_reads_;
  double own_part_ = 0;            // seconds on average, before the outage
  std::vector<double> latencies_;  // seconds from the end of a push to the report
};

}  // namespace gitops::demo
