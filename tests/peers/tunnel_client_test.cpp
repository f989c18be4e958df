#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "peers/peer_frps.hpp"
#include "test_http/raw_http.hpp"

// Our tunnel-client and the real server of frp: each version, each stack of layers.
namespace gitops::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using Version = PeerFrps::Version;

constexpr const char* kHost = "acc-rt.example.test";

struct Stack {
  const char* name;
  const char* protocol;
  bool tls;
};
constexpr Stack kStacks[] = {{"Tcp", "tcp", false},
                             {"TcpTls", "tcp", true},
                             {"WebSocket", "websocket", false},
                             {"WebSocketTls", "websocket", true},
                             {"Wss", "wss", true}};
constexpr Stack kWss = kStacks[4];

// The tunnel-client as a child process.
class Client {
 public:
  Client(const PeerFrps& server, const Stack& stack, int upstream_port,
         Environment environment = {})
      : process_({.argv = {std::string(GITOPS_BIN_DIR) + "/tunnel-client",
                           "--tunnel-server.host=localhost",
                           "--tunnel-server.port=" +
                               std::to_string(std::string_view(stack.protocol) == "wss"
                                                  ? server.wss_port()
                                                  : server.port()),
                           std::string("--tunnel-server.protocol=") + stack.protocol,
                           std::string("--tunnel-server.tls=") + (stack.tls ? "true" : "false"),
                           "--tunnel-server.ca-file=" + server.ca_file().string(),
                           "--tunnel.subdomain-prefix=acc-rt", "--tunnel.forward-to.host=127.0.0.1",
                           "--tunnel.forward-to.port=" + std::to_string(upstream_port),
                           "--admin-address=127.0.0.1", "--admin-port=0",
                           // The server keeps idle connections, which a drain waits for.
                           "--drain-timeout=2s"},
                  .env = std::move(environment),
                  .log_file = folder_ / "log"}) {
    require_until([this] { return log().contains(R"("admin_port":)"); }, seconds(20),
                  "the tunnel-client to start");
    constexpr std::string_view kKey = R"("admin_port":)";
    admin_port_ = std::atoi(log().c_str() + log().find(kKey) + kKey.size());
  }

  HttpReply admin(const std::string& path) const {
    return http_call({.url = "http://127.0.0.1:" + std::to_string(admin_port_) + path});
  }
  bool is_ready() const { return admin("/readyz").ok(); }
  void await_ready() {
    if (!wait_until([this] { return is_ready(); }, seconds(30), "the tunnel")) {
      throw std::runtime_error("no tunnel: " + admin("/readyz").body + "\n" + log());
    }
  }
  std::string log() const { return read_file(folder_ / "log"); }
  Process& process() { return process_; }

 private:
  TempDir folder_;
  Process process_;
  int admin_port_ = 0;
};

RawResponse call(const PeerFrps& server, const std::string& method, const std::string& target,
                 const std::string& body = {}) {
  std::string request = method + " " + target + " HTTP/1.1\r\nHost: " + kHost + "\r\n";
  if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return raw_call(static_cast<std::uint16_t>(server.vhost_port()), request + "\r\n" + body);
}

bool echo(const RecordedRequest& request, RawSocket& socket) {
  return RecordingUpstream::reply(socket, request.body.empty() ? "hello" : request.body);
}

std::string text_of(std::size_t size) {
  std::string text;
  while (text.size() < size) text += std::to_string(text.size()) + ",";
  return text;
}

struct PeerTunnel : testing::TestWithParam<std::tuple<Version, Stack>> {
  void SetUp() override { GITOPS_REQUIRE_PEER(PeerFrps); }
};

TEST_P(PeerTunnel, RequestsReachTheUpstream) {
  const auto& [version, stack] = GetParam();
  PeerFrps server(version, "s3cret");
  RecordingUpstream upstream("router", echo);
  Client client(server, stack, upstream.port(),
                {{"TUNNEL_SERVER_TOKEN", "s3cret"}, {"AUTHORIZATION", "runtime-token"}});
  client.await_ready();

  const auto answer = call(server, "GET", "/app-proxy/api?x=1");
  EXPECT_EQ(answer.status, 200) << client.log();
  EXPECT_EQ(answer.body, "hello");
  ASSERT_EQ(upstream.requests().size(), 1u);
  EXPECT_EQ(upstream.requests()[0].target(), "/app-proxy/api?x=1");
  EXPECT_EQ(upstream.requests()[0].header("Host"), kHost);

  const auto text = text_of(3'000'000);
  const auto echoed = call(server, "POST", "/", text);
  EXPECT_EQ(echoed.status, 200);
  EXPECT_TRUE(echoed.body == text) << "3 MB came back changed";

  std::vector<std::jthread> users;
  std::vector<int> statuses(40);
  for (auto& status : statuses) {
    users.emplace_back([&] { status = call(server, "POST", "/", text_of(20'000)).status; });
  }
  users.clear();
  EXPECT_THAT(statuses, testing::Each(200));

  EXPECT_THAT(client.admin("/statusz").body, HasSubstr("state: serving"));
  EXPECT_THAT(client.admin("/metrics").body, HasSubstr("gitops_tunnel_client_connections_total"));
  EXPECT_THAT(client.log(), testing::Not(HasSubstr("s3cret")));
  EXPECT_THAT(client.log(), testing::Not(HasSubstr("runtime-token")));
  EXPECT_EQ(client.process().stop(), 0);
  EXPECT_EQ(call(server, "GET", "/").status, 404);
}

INSTANTIATE_TEST_SUITE_P(All, PeerTunnel,
                         testing::Combine(testing::Values(Version::v0_44, Version::v0_70),
                                          testing::ValuesIn(kStacks)),
                         [](const auto& param) {
                           return std::string(std::get<1>(param.param).name) +
                                  (std::get<0>(param.param) == Version::v0_44 ? "044" : "070");
                         });

struct PeerTunnelStates : testing::TestWithParam<Version> {
  void SetUp() override { GITOPS_REQUIRE_PEER(PeerFrps); }
};

TEST_P(PeerTunnelStates, AWrongTokenIsToldWithTheServersReason) {
  PeerFrps server(GetParam(), "s3cret");
  RecordingUpstream upstream("router");
  Client client(server, kWss, upstream.port(), {{"TUNNEL_SERVER_TOKEN", "guess"}});
  EXPECT_TRUE(wait_until(
      [&] { return client.admin("/readyz").body.contains("refuses the login: token in login"); },
      seconds(20), "the server's reason"))
      << client.log();
  EXPECT_TRUE(client.process().running());
}

TEST_P(PeerTunnelStates, ANameThatIsTakenIsToldAndAskedForAgain) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router");
  auto first = std::make_optional<Client>(server, kWss, upstream.port());
  first->await_ready();
  Client second(server, kWss, upstream.port());
  EXPECT_TRUE(wait_until([&] { return second.admin("/readyz").body.contains("refused: "); },
                         seconds(20), "the refusal"))
      << second.log();
  first.reset();
  second.await_ready();
  EXPECT_EQ(call(server, "GET", "/").status, 200);
}

TEST_P(PeerTunnelStates, ARestartedServerIsFoundAgain) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router");
  Client client(server, kWss, upstream.port());
  client.await_ready();
  server.kill();
  EXPECT_TRUE(wait_until([&] { return !client.is_ready(); }, seconds(20), "the loss"));
  server.restart();
  client.await_ready();
  EXPECT_EQ(call(server, "GET", "/").status, 200);
}

TEST_P(PeerTunnelStates, AnUpstreamThatIsDownHarmsNoTunnel) {
  PeerFrps server(GetParam());
  Client client(server, kWss, free_port());
  client.await_ready();
  EXPECT_GE(call(server, "GET", "/").status, 400);
  EXPECT_THAT(client.log(), HasSubstr("a connection was refused here"));
  EXPECT_TRUE(client.is_ready());
}

TEST_P(PeerTunnelStates, AStopLetsRequestsFinish) {
  PeerFrps server(GetParam());
  std::atomic<bool> asked = false;
  std::atomic<bool> may_answer = false;
  RecordingUpstream upstream("router", [&](const RecordedRequest& request, RawSocket& socket) {
    if (request.target() == "/slow") {
      asked = true;
      may_answer.wait(false);
    }
    return RecordingUpstream::reply(socket, request.target());
  });
  Client client(server, kWss, upstream.port());
  client.await_ready();
  RawResponse answer;
  std::jthread user([&] { answer = call(server, "GET", "/slow"); });
  EXPECT_TRUE(wait_until([&] { return asked.load(); }, seconds(10), "the request"));
  client.process().signal(SIGTERM);
  EXPECT_TRUE(wait_until([&] { return call(server, "GET", "/").status == 404; }, seconds(10),
                         "the end of the proxy"));
  may_answer = true;
  may_answer.notify_all();
  user.join();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "/slow");
  EXPECT_EQ(client.process().wait(seconds(10)), 0);
}

TEST_P(PeerTunnelStates, ACertificateOfAnotherNameIsRefused) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router");
  Client client(server, kWss, upstream.port(),
                {{"TUNNEL_SERVER_NAME", "somebody-else"}, {"AUTHORIZATION", "runtime-token"}});
  EXPECT_TRUE(wait_until([&] { return client.admin("/readyz").body.contains("mismatch"); },
                         seconds(20), "the refusal"))
      << client.admin("/readyz").body << client.log();
}

INSTANTIATE_TEST_SUITE_P(All, PeerTunnelStates, testing::Values(Version::v0_44, Version::v0_70),
                         [](const auto& param) {
                           return param.param == Version::v0_44 ? std::string("Frp044")
                                                                : std::string("Frp070");
                         });

}  // namespace
}  // namespace gitops::test
