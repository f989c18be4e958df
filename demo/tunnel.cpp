// The part of the scene in which users reach the runtime through the tunnel, and the network between
// its ends is cut.
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "scene.hpp"
#include "support/run_on.hpp"

namespace gitops::demo {
namespace {

constexpr auto kTimeLimit = std::chrono::seconds(40);
constexpr auto kCut = std::chrono::seconds(3);
// The user's address; all other programs have 127.0.0.1.
constexpr const char* kUser = "127.0.0.7";

std::string milliseconds_since(Clock::time_point begin) {
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  return std::to_string(took.count()) + " ms";
}

}  // namespace

std::string Scene::tunnel_command(const std::string& body) const {
  const auto host = tunnel_host_ + ":" + std::to_string(tunnel_server_->port);
  return "curl -s -w '\\n%{http_code}' --noproxy '*' --interface " + std::string(kUser) +
         " --cacert " + shell_word(authority_->ca_file()) + " --resolve " + host +
         ":127.0.0.1 -H 'Content-Type: application/json' -H 'Authorization: " + plane_.key() +
         "' -d '" + body + "' https://" + host + "/app-proxy/api/graphql";
}

Task<test::HttpReply> Scene::ask_through_tunnel(std::string body) {
  const auto done = co_await test::run_on(
      pool_, [command = tunnel_command(body)] { return test::run_command({"sh", "-c", command}); });
  const auto line = done.out.rfind('\n');
  if (line == std::string::npos) co_return test::HttpReply{.status = 0, .body = done.err};
  co_return test::HttpReply{.status = std::atoi(done.out.c_str() + line + 1),
                            .body = done.out.substr(0, line)};
}

Task<> Scene::wait_for_tunnel(bool serving) {
  const auto deadline = deadline_after(kTimeLimit);
  while (!co_await test::run_on(pool_, [this, serving] {
    return tunnel_server_->serves(tunnel_host_) == serving && tunnel_client_->is_ready() == serving;
  })) {
    check(tunnel_client_->process().running(), "tunnel-client has ended");
    check(tunnel_server_->process().running(), "tunnel-server has ended");
    check(Clock::now() < deadline, serving ? "the tunnel does not come" : "the tunnel does not go");
    co_await sleep_for(std::chrono::milliseconds(5));
  }
}

Task<> Scene::tunnel() {
  authority_ = std::make_unique<test::CertificateAuthority>();
  // It asks the control plane whether a client may offer a host.
  tunnel_server_ = std::make_unique<test::OwnTunnelServer>(
      *authority_, std::vector{"--plugin.url=" + plane_.tunnel_plugin()});
  const auto prefix = plane_.account_id() + "-" + kRuntime;
  tunnel_host_ = prefix + ".example.test";
  narrator_.step("tunnel-server started (pid " + std::to_string(tunnel_server_->process().pid()) +
                 "), https://" + tunnel_host_ + ":" + std::to_string(tunnel_server_->port));
  network_ = std::make_unique<test::TcpRelay>(co_await asio::this_coro::executor, "127.0.0.1",
                                              tunnel_server_->tunnel_port);
  const auto begin = Clock::now();
  tunnel_client_ = std::make_unique<test::OwnTunnelClient>(
      std::vector{network_->port()}, authority_->ca_file(), router_->port(),
      std::vector<std::string>{}, test::TunnelRuntime{.prefix = prefix, .token = runtime_token_});
  co_await wait_for_tunnel(true);
  narrator_.step("tunnel-client started (pid " + std::to_string(tunnel_client_->process().pid()) +
                 "), serves after " + milliseconds_since(begin));

  const auto ask = [&]() -> Task<> {
    const auto app = co_await application();
    const auto sync = app.value("/status/sync/status"_json_pointer, "");
    check(sync == "SYNCED", "app-proxy shows another application: " + app.dump());
    narrator_.step("POST https://" + tunnel_host_ + "/app-proxy/api/graphql: application " +
                   kAppName + " is " + sync + ", " +
                   app.value("/status/health/status"_json_pointer, ""));
  };
  co_await ask();

  const auto cut = Clock::now();
  network_->close();
  narrator_.step("the network between tunnel-client and tunnel-server is cut");
  co_await wait_for_tunnel(false);
  const auto refused = co_await ask_through_tunnel("{}");
  check(refused.status == 404,
        "without the network, a request was answered with " + std::to_string(refused.status));
  narrator_.step("the same request: 404 from tunnel-server, as no client offers the host");
  if (Clock::now() < cut + kCut) co_await sleep_for(cut + kCut - Clock::now());
  network_->open();
  const auto back = Clock::now();
  narrator_.step("the network is back, after " + milliseconds_since(cut));
  co_await wait_for_tunnel(true);
  narrator_.step("tunnel-client serves again, " + milliseconds_since(back) + " after its return");
  co_await ask();
}

Task<> Scene::stop_servers() {
  if (page_) co_await page_->stop();
  if (network_) co_await network_->stop();
  if (git_host_) co_await git_host_->stop();
}

}  // namespace gitops::demo
