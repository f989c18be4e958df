#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "peers/tunnel_bed.hpp"
#include "support/wait.hpp"

// The states of our tunnel-client with the real server of frp, each version, over wss that nginx ends.
namespace gitops::test {
namespace {

using std::chrono::seconds;
using Version = PeerFrps::Version;
using Client = TunnelClientProcess;

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

TEST_P(PeerTunnelStates, AnUpstreamThatIsDownHarmsNoTunnel) {
  PeerFrps server(GetParam());
  Client client(server, free_port());
  client.await_ready();
  EXPECT_GE(tunnel_call(server, "GET", "/").status, 400);
  EXPECT_TRUE(wait_until([&] { return client.log().contains("a connection was refused here"); },
                         seconds(20), "the line about it"));
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
