#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "peers/tunnel_bed.hpp"

// Our tunnel-client and the real server of frp: each version, each stack of layers.
namespace gitops::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using Version = PeerFrps::Version;
using Client = TunnelClientProcess;

constexpr TunnelStack kStacks[] = {{"Tcp", "tcp", false},
                                   {"TcpTls", "tcp", true},
                                   {"WebSocket", "websocket", false},
                                   {"WebSocketTls", "websocket", true},
                                   kWss};

std::string text_of(std::size_t size) {
  std::string text;
  while (text.size() < size) text += std::to_string(text.size()) + ",";
  return text;
}

struct PeerTunnel : testing::TestWithParam<std::tuple<Version, TunnelStack>> {
  void SetUp() override { GITOPS_REQUIRE_PEER(PeerFrps); }
};

TEST_P(PeerTunnel, RequestsReachTheUpstream) {
  const auto& [version, stack] = GetParam();
  PeerFrps server(version, "s3cret");
  RecordingUpstream upstream("router", tunnel_echo);
  Client client(server, upstream.port(),
                {.stack = stack,
                 .env = {{"TUNNEL_SERVER_TOKEN", "s3cret"}, {"AUTHORIZATION", "runtime-token"}}});
  client.await_ready();

  const auto answer = tunnel_call(server, "GET", "/app-proxy/api?x=1");
  EXPECT_EQ(answer.status, 200) << client.log();
  EXPECT_EQ(answer.body, "hello");
  ASSERT_EQ(upstream.requests().size(), 1u);
  EXPECT_EQ(upstream.requests()[0].target(), "/app-proxy/api?x=1");
  EXPECT_EQ(upstream.requests()[0].header("Host"), kTunnelHost);

  const auto text = text_of(3'000'000);
  const auto echoed = tunnel_call(server, "POST", "/", text);
  EXPECT_EQ(echoed.status, 200);
  EXPECT_TRUE(echoed.body == text) << "3 MB came back changed";

  std::vector<std::jthread> users;
  std::vector<int> statuses(40);
  for (auto& status : statuses) {
    users.emplace_back([&] { status = tunnel_call(server, "POST", "/", text_of(20'000)).status; });
  }
  users.clear();
  EXPECT_THAT(statuses, testing::Each(200));

  EXPECT_THAT(client.admin("/statusz").body, HasSubstr("state: serving"));
  EXPECT_THAT(client.admin("/metrics").body, HasSubstr("gitops_tunnel_client_connections_total"));
  EXPECT_THAT(client.log(), testing::Not(HasSubstr("s3cret")));
  EXPECT_THAT(client.log(), testing::Not(HasSubstr("runtime-token")));
  EXPECT_EQ(client.process().stop(), 0);
  EXPECT_EQ(tunnel_call(server, "GET", "/").status, 404);
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
  Client client(server, upstream.port(), {.env = {{"TUNNEL_SERVER_TOKEN", "guess"}}});
  EXPECT_TRUE(wait_until(
      [&] { return client.admin("/readyz").body.contains("refuses the login: token in login"); },
      seconds(20), "the server's reason"))
      << client.log();
  EXPECT_TRUE(client.process().running());
}

TEST_P(PeerTunnelStates, ANameThatIsTakenIsToldAndAskedForAgain) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router");
  auto first = std::make_optional<Client>(server, upstream.port());
  first->await_ready();
  Client second(server, upstream.port());
  EXPECT_TRUE(wait_until([&] { return second.admin("/readyz").body.contains("refused: "); },
                         seconds(20), "the refusal"))
      << second.log();
  first.reset();
  second.await_ready();
  EXPECT_EQ(tunnel_call(server, "GET", "/").status, 200);
}

TEST_P(PeerTunnelStates, ARestartedServerIsFoundAgain) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router");
  Client client(server, upstream.port());
  client.await_ready();
  server.kill();
  EXPECT_TRUE(wait_until([&] { return !client.is_ready(); }, seconds(20), "the loss"));
  server.restart();
  client.await_ready();
  EXPECT_EQ(tunnel_call(server, "GET", "/").status, 200);
}

TEST_P(PeerTunnelStates, AnUpstreamThatIsDownHarmsNoTunnel) {
  PeerFrps server(GetParam());
  Client client(server, free_port());
  client.await_ready();
  EXPECT_GE(tunnel_call(server, "GET", "/").status, 400);
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
  Client client(server, upstream.port());
  client.await_ready();
  RawResponse answer;
  std::jthread user([&] { answer = tunnel_call(server, "GET", "/slow"); });
  EXPECT_TRUE(wait_until([&] { return asked.load(); }, seconds(10), "the request"));
  client.process().signal(SIGTERM);
  EXPECT_TRUE(wait_until([&] { return tunnel_call(server, "GET", "/").status == 404; }, seconds(10),
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
  Client client(
      server, upstream.port(),
      {.env = {{"TUNNEL_SERVER_NAME", "somebody-else"}, {"AUTHORIZATION", "runtime-token"}}});
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
