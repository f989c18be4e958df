// The tunnel of a runtime, by the real tunnel-server and tunnel-client: the control plane allows it by the runtime's
// token, and takes it away when the token is revoked. The tunnel-server asks the plugin with its own token.
#include <csignal>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "daemons/control_plane_process.hpp"
#include "support/wait.hpp"
#include "test_http/raw_http.hpp"

namespace gitops::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

const Environment kNoProxies{{"HTTP_PROXY", std::nullopt},
                             {"http_proxy", std::nullopt},
                             {"HTTPS_PROXY", std::nullopt},
                             {"https_proxy", std::nullopt}};
constexpr const char* kDomain = "tunnels.example.test";

struct TunnelBed {
  TunnelBed() {
    write_file(folder / "plugin", "plugin-token");
    write_file(folder / "api", "api-token");
    account = program.add_account("acme");
    program.add_user("ann", "acme", {"--admin"});
    key = program.create_key("ann", "acme");
    program.start();
    token = program.register_runtime(key, "prod");
    start_server();
  }

  void start_server() {
    auto environment = kNoProxies;
    environment["API_TOKEN"] = "api-token";
    server = std::make_unique<Process>(ProcessOptions{
        .argv = {std::string(GITOPS_BIN_DIR) + "/tunnel-server",
                 std::string("--subdomain-host=") + kDomain,
                 "--plugin.url=" + program.url() + "/tunnel-plugin/plugin-token",
                 "--tunnel.listen-address=127.0.0.1",
                 "--tunnel.port=" + std::to_string(tunnel_port), "--listen-address=127.0.0.1",
                 "--port=" + std::to_string(user_port), "--api.port=" + std::to_string(api_port),
                 "--admin-address=127.0.0.1", "--admin-port=" + std::to_string(admin_port)},
        .env = std::move(environment),
        .log_file = folder / "server.log"});
    require_until(
        [this] {
          return http_call({.url = "http://127.0.0.1:" + std::to_string(admin_port) + "/readyz"})
              .ok();
        },
        seconds(30), "the tunnel-server");
  }
  // Starts a client with this token; an earlier one ends.
  void start_client(const std::string& with) {
    auto environment = kNoProxies;
    environment["AUTHORIZATION"] = with;
    client.reset();
    client = std::make_unique<Process>(
        ProcessOptions{.argv = {std::string(GITOPS_BIN_DIR) + "/tunnel-client",
                                "--tunnel-server.host=127.0.0.1:" + std::to_string(tunnel_port),
                                "--tunnel-server.protocol=tcp", "--tunnel-server.tls=false",
                                "--tunnel.subdomain-prefix=" + account + "-prod",
                                "--tunnel.forward-to.host=127.0.0.1",
                                "--tunnel.forward-to.port=" + std::to_string(upstream.port()),
                                "--admin-address=127.0.0.1", "--admin-port=0"},
                       .env = std::move(environment),
                       .log_file = folder / "client.log"});
  }
  // The status that a user of the runtime's host gets.
  [[nodiscard]] int user_status() const {
    return raw_call(static_cast<std::uint16_t>(user_port),
                    "GET / HTTP/1.1\r\nHost: " + account + "-prod." + kDomain + "\r\n\r\n")
        .status;
  }
  void await_status(int status, const char* what) {
    require_until([&] { return user_status() == status; }, seconds(60), what);
  }
  void revoke_token() {
    const auto reply = http_call({.method = "DELETE",
                                  .url = program.url() + "/api/auth/key/" + token.substr(0, 24),
                                  .headers = {"Authorization: " + key}});
    ASSERT_EQ(reply.status, 200) << reply.body;
  }
  [[nodiscard]] bool has_metric(const std::string& line) const {
    return program.admin("/metrics").body.contains("\n" + line + "\n");
  }
  [[nodiscard]] std::string logs() const {
    return read_file(folder / "server.log") + read_file(folder / "client.log") + program.log();
  }

  TempDir folder;
  const int tunnel_port = free_port();
  const int user_port = free_port();
  const int api_port = free_port();
  const int admin_port = free_port();
  RecordingUpstream upstream{"upstream"};
  ControlPlaneProcess program{{},
                              {std::string("--tunnel.domain=") + kDomain,
                               "--tunnel.plugin-token-file=" + (folder / "plugin").string(),
                               "--tunnel.api-urls=http://127.0.0.1:" + std::to_string(api_port),
                               "--tunnel.api-token-file=" + (folder / "api").string()}};
  std::string account;  // id
  std::string key;      // of the user ann
  std::string token;    // of the runtime
  std::unique_ptr<Process> server;
  std::unique_ptr<Process> client;
};

TEST(ControlPlaneTunnel, ARevokedTokenLosesItsTunnelAndDoesNotComeBack) {
  TunnelBed bed;
  bed.start_client(bed.token);
  bed.await_status(200, "the tunnel");
  bed.revoke_token();
  bed.await_status(404, "the end of the tunnel");
  require_until([&] { return bed.has_metric("gitops_control_plane_tunnel_bans_pending 0"); },
                seconds(10), "no pending ban");
  EXPECT_TRUE(bed.has_metric(R"(gitops_control_plane_tunnel_bans_total{result="done"} 1)"));
  // The ban ends, and the client asks again: the plugin refuses its token.
  require_until(
      [&] {
        return read_file(bed.folder / "server.log").contains("invalid token") ||
               read_file(bed.folder / "client.log").contains("invalid token");
      },
      seconds(90), "a refusal of the revoked token");
  EXPECT_EQ(bed.user_status(), 404) << bed.logs();

  // A new registration has a tunnel at once.
  bed.token = bed.program.register_runtime(bed.key, "prod");
  bed.start_client(bed.token);
  bed.await_status(200, "the tunnel of the new token");
}

TEST(ControlPlaneTunnel, ABanIsRepeatedUntilTheServerTakesIt) {
  TunnelBed bed;
  bed.start_client(bed.token);
  bed.await_status(200, "the tunnel");
  // The server answers nothing for a while, and keeps its connections.
  bed.server->signal(SIGSTOP);
  bed.revoke_token();
  require_until([&] { return bed.has_metric("gitops_control_plane_tunnel_bans_pending 1"); },
                seconds(10), "the pending ban");
  require_until(
      [&] {
        return bed.program.admin("/statusz").body.contains("a tunnel server does not take a ban");
      },
      seconds(30), "the status of the ban");
  // What is pending outlives the control plane.
  bed.program.kill();
  bed.program.start();
  require_until([&] { return bed.has_metric("gitops_control_plane_tunnel_bans_pending 1"); },
                seconds(10), "the pending ban after a restart");
  bed.server->signal(SIGCONT);
  bed.await_status(404, "the end of the tunnel");
  require_until([&] { return bed.has_metric("gitops_control_plane_tunnel_bans_pending 0"); },
                seconds(30), "no pending ban");
}

TEST(ControlPlaneTunnel, ATokenOfAnotherRuntimeOpensNoTunnel) {
  TunnelBed bed;
  bed.start_client(bed.program.register_runtime(bed.key, "stage"));
  require_until(
      [&] {
        return !bed.has_metric(
            R"(gitops_control_plane_tunnel_questions_total{result="refused"} 0)");
      },
      seconds(60), "a refusal");
  EXPECT_EQ(bed.user_status(), 404) << bed.logs();
}

}  // namespace
}  // namespace gitops::test
