#include <atomic>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "peers/tunnel_bed.hpp"
#include "support/wait.hpp"

// What is not the same for every pair (tunnel_pairs_test.cpp): our tunnel-client and the real server of
// frp, each version, over wss that nginx ends.
namespace gitops::test {
namespace {

using std::chrono::seconds;
using testing::Each;
using testing::HasSubstr;
using Version = PeerFrps::Version;
using Client = TunnelClientProcess;

struct PeerTunnelTraffic : testing::TestWithParam<Version> {
  void SetUp() override { GITOPS_REQUIRE_PEER(PeerFrps); }
};

std::uint16_t users_port(const PeerFrps& server) {
  return static_cast<std::uint16_t>(server.vhost_port());
}

// Of two users, one reads nothing of an answer without an end. What fills up is that user's stream.
TEST_P(PeerTunnelTraffic, AC21_AStalledUserSlowsNobodyElse) {
  PeerFrps server(GetParam());
  std::atomic<std::size_t> sent = 0;
  std::atomic<bool> done = false;
  RecordingUpstream upstream("router", [&](const RecordedRequest& request, RawSocket& socket) {
    if (request.target() != "/endless") return tunnel_echo(request, socket);
    socket.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    const std::string block(64 * 1024, 'x');
    while (!done && socket.send(block)) sent += block.size();
    return false;
  });
  Client client(server, upstream.port());
  client.await_ready();
  RawSocket stalled(users_port(server));
  stalled.send(std::string("GET /endless HTTP/1.1\r\nHost: ") + kTunnelHost + "\r\n\r\n");
  // Until nothing more fits anywhere.
  std::size_t before = 1;
  EXPECT_TRUE(wait_until([&] { return sent > 0 && std::exchange(before, sent) == sent; },
                         seconds(30), "the stall", std::chrono::milliseconds(500)));
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(tunnel_call(server, "POST", "/", std::string(20'000, 'y')).body.size(), 20'000u);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
  done = true;
  stalled.reset();
}

TEST_P(PeerTunnelTraffic, AFurtherHostLeadsElsewhere) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router");
  RecordingUpstream docs("docs");
  Client client(
      server, upstream.port(),
      {.flags = {"--tunnel.extra-proxies=docs=127.0.0.1:" + std::to_string(docs.port())}});
  client.await_ready();
  EXPECT_EQ(tunnel_call(server, "GET", "/").body, "router");
  EXPECT_EQ(tunnel_call(server, "GET", "/", "", "acc-rt-docs.example.test").body, "docs");
}

TEST_P(PeerTunnelTraffic, EncryptedAndCompressedConnections) {
  PeerFrps server(GetParam(), {.token = "s3cret"});
  RecordingUpstream upstream("router", tunnel_echo);
  std::string text;
  while (text.size() < 3'000'000) text += std::to_string(text.size()) + ",";
  const std::string encryption = "--tunnel.use-encryption";
  const std::string compression = "--tunnel.use-compression";
  const std::vector<std::vector<std::string>> combinations{
      {encryption}, {compression}, {encryption, compression}};
  for (const auto& flags : combinations) {
    Client client(server, upstream.port(),
                  {.env = {{"TUNNEL_SERVER_TOKEN", "s3cret"}}, .flags = flags});
    client.await_ready();
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(tunnel_call(server, "GET", "/").body, "hello") << flags[0];
      EXPECT_TRUE(tunnel_call(server, "POST", "/", text).body == text) << flags[0];
    }
  }
}

TEST_P(PeerTunnelTraffic, WireV2) {
  if (GetParam() == Version::v0_44) GTEST_SKIP() << "frp has it since 0.69";
  for (const bool mux : {true, false}) {
    PeerFrps server(GetParam(), {.token = "s3cret", .tcp_mux = mux, .signs_all = true});
    RecordingUpstream upstream("router", tunnel_echo);
    Client client(server, upstream.port(),
                  {.env = {{"TUNNEL_SERVER_TOKEN", "s3cret"}},
                   .flags = {"--tunnel-server.wire-protocol=v2",
                             "--tunnel-server.auth-scopes=HeartBeats,NewWorkConns",
                             std::string("--tunnel-server.tcp-mux=") + (mux ? "true" : "false"),
                             "--tunnel.use-compression", "--tunnel.use-encryption"}});
    client.await_ready();
    const std::string text(3'000'000, 'e');
    EXPECT_TRUE(tunnel_call(server, "POST", "/", text).body == text);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(tunnel_call(server, "GET", "/").body, "hello");
    // A server of another token.
    Client wrong(server, upstream.port(),
                 {.env = {{"TUNNEL_SERVER_TOKEN", "guess"}},
                  .flags = {"--tunnel-server.wire-protocol=v2",
                            std::string("--tunnel-server.tcp-mux=") + (mux ? "true" : "false")}});
    EXPECT_TRUE(wait_until(
        [&] { return wrong.admin("/readyz").body.contains("the server refuses the login"); },
        seconds(20), "the refusal"))
        << wrong.admin("/readyz").body;
  }
}

TEST_P(PeerTunnelTraffic, WithoutYamux) {
  PeerFrps server(GetParam(), {.tcp_mux = false});
  RecordingUpstream upstream("router", tunnel_echo);
  Client client(server, upstream.port(), {.flags = {"--tunnel-server.tcp-mux=false"}});
  client.await_ready();
  std::vector<int> statuses(40);
  {
    std::vector<std::jthread> users;
    for (auto& status : statuses) {
      users.emplace_back(
          [&] { status = tunnel_call(server, "POST", "/", std::string(50'000, 'z')).status; });
    }
  }
  EXPECT_THAT(statuses, Each(200));
  EXPECT_EQ(client.process().stop(), 0);
}

TEST_P(PeerTunnelTraffic, AdditionalScopes) {
  PeerFrps server(GetParam(), {.token = "s3cret", .signs_all = true});
  RecordingUpstream upstream("router", tunnel_echo);
  const Environment env{{"TUNNEL_SERVER_TOKEN", "s3cret"}};
  {
    Client client(server, upstream.port(),
                  {.env = env, .flags = {"--tunnel-server.auth-scopes=HeartBeats,NewWorkConns"}});
    client.await_ready();
    EXPECT_EQ(tunnel_call(server, "GET", "/").status, 200);
    EXPECT_EQ(client.process().stop(), 0);
  }
  // Shows that the server asks for them.
  Client client(server, upstream.port(), {.env = env});
  EXPECT_TRUE(wait_until([&] { return server.log().contains("invalid NewWorkConn with run id"); },
                         seconds(20), "the refusal"))
      << server.log();
}

INSTANTIATE_TEST_SUITE_P(All, PeerTunnelTraffic, testing::Values(Version::v0_44, Version::v0_70),
                         [](const auto& param) {
                           return param.param == Version::v0_44 ? std::string("Frp044")
                                                                : std::string("Frp070");
                         });

}  // namespace
}  // namespace gitops::test
