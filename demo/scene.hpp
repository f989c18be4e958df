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
#include "narrator.hpp"
#include "open_page.hpp"
#include "plane.hpp"
#include "support/git_server.hpp"
#include "support/process.hpp"
#include "support/tcp_relay.hpp"
#include "support/test_certs.hpp"
#include "world.hpp"

namespace gitops::demo {

inline constexpr const char* kRepository = "shop";
inline constexpr const char* kRuntime = "demo";

// Returns the application's Deployment, as a manifest.
std::string deployment(int replicas);
std::string describe(const OpenPage::Row& row);
// Describes a GitHub push webhook by the fields of its body.
std::string describe_push(const std::string& body);

// The scene: a change in Git reaches the control plane, and the page that somebody has open there. It
// is the same in every world and checks each line before it writes it. Throws Failure.
class Scene {
 public:
  Scene(Narrator& narrator, World& world, test::GitServer& git, Plane& plane,
        asio::thread_pool& pool);

  // Plays the scene. `keep`: stops before the application is deleted.
  Task<> play(bool keep);
  // Follows the repository as automated sync does, until cancelled.
  Task<> follow();
  // Explains how to use the running programs.
  void print_hints();
  // Stops the running daemons with SIGTERM and expects exit code 0.
  Task<> stop_daemons();
  // The open page, the tunnel's network and the Git host. Await it before the destructor.
  Task<> stop_servers();
  // Returns the last log lines of each daemon that was started.
  [[nodiscard]] std::string daemon_logs(std::size_t lines) const;

 private:
  using Row = OpenPage::Row;
  using Json = nlohmann::json;

  // Waits until the daemon's admin port responds to `awaited` with 200.
  Task<> start_daemon(const char* awaited);
  Task<std::string> push(test::FileChanges changes, std::string message);
  void kill_daemon();
  // Returns the first matching row of the open page after index `after`. `what` names it in a
  // failure.
  Task<const Row*> wait_for(std::size_t after, std::string what,
                            std::function<bool(const Row&)> matches);
  // Returns the row of a resource, or of the application, at this revision.
  Task<const Row*> wait_for_revision(std::size_t after, std::string kind, std::string revision,
                                     std::string sync = "SYNCED");
  // Asks the control plane for its application until it matches, and returns it.
  Task<Json> wait_for_application(std::string what, std::function<bool(const Json&)> matches);
  // Returns once the control plane shows this deployment as the newest one, and tells it. Without a
  // number of replicas any will do: after a change to fewer of them, Argo CD tells the number only
  // with its next refresh.
  Task<> wait_for_deployment(std::string revision, std::optional<int> replicas = {});
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

  Task<> start_router_and_app_proxy();
  // Waits until app-proxy has registered the runtime and stored its token.
  Task<> wait_for_registration();
  // Sends an operation with one field through the tunnel, and returns its data. Throws for an
  // error.
  Task<Json> ask_app_proxy(std::string document, Json variables);
  Task<Json> application();
  Task<std::string> commit_as_user(Json file, std::string message);
  Task<> sync_as_user();
  Task<> wait_for_operation(std::string phase);
  // Number of state changes that succeeded, by app-proxy's audit stream.
  [[nodiscard]] std::size_t audited() const;

  Task<> begin();
  Task<> register_runtime();
  Task<> show_what_is_there();
  Task<> scale();
  Task<> remove_resource();
  Task<> send_inbound();
  Task<> tunnel();
  Task<> act();
  Task<> roll_back();
  Task<> terminate();
  Task<> outage();
  Task<> change_while_away(Clock::time_point until);
  Task<double> own_part();
  Task<> delete_application();
  Task<> summary(bool keep);

  Narrator& narrator_;
  World& world_;
  test::GitServer& git_;
  Plane& plane_;
  asio::thread_pool& pool_;
  test::TempDir folder_;
  std::optional<test::Process> daemon_;
  std::unique_ptr<OpenPage> page_;
  std::unique_ptr<test::FakeGitHost> git_host_;  // REST interface for the repositories of git_
  std::unique_ptr<test::AppProxyProcess> app_proxy_;
  std::unique_ptr<test::RouterHarness> router_;
  std::unique_ptr<test::CertificateAuthority> authority_;  // of the tunnel-server
  std::unique_ptr<test::OwnTunnelServer> tunnel_server_;
  std::unique_ptr<test::TcpRelay> network_;  // between the ends of the tunnel
  std::unique_ptr<test::OwnTunnelClient> tunnel_client_;
  int main_port_ = 0;
  int admin_port_ = 0;
  std::string runtime_token_;
  std::string app_uid_;
  std::string tunnel_host_;

  std::string repository_url_;
  std::string first_revision_;
  std::string last_revision_;
  std::size_t commits_ = 0;
  // Commits, and Argo CD's reads, that belong to the outage.
  std::size_t outage_commits_ = 0;
  World::Reads outage_reads_;
  std::size_t stored_ = 0;         // events before the outage
  double own_part_ = 0;            // seconds on average, before the outage
  std::vector<double> latencies_;  // seconds from the end of a push to the page
};

}  // namespace gitops::demo
