#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "peers/tunnel_bed.hpp"

// What goes through the tunnel: our tunnel-client and the real server of frp, each version, over wss
// that nginx ends.
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

// Bytes that do not repeat where a block of any layer ends.
char byte_at(std::size_t position) {
  return static_cast<char>('a' + position % 23);
}

TEST_P(PeerTunnelTraffic, AHundredMegabytesBothWays) {
  constexpr std::size_t kSize = 100'000'000;
  PeerFrps server(GetParam());
  std::string large(kSize, '\0');
  for (std::size_t i = 0; i < kSize; ++i) large[i] = byte_at(i);
  std::atomic<bool> came_whole = false;
  RecordingUpstream upstream("router", [&](const RecordedRequest& request, RawSocket& socket) {
    if (request.method() == "POST") came_whole = request.body == large;
    return RecordingUpstream::reply(socket, request.method() == "POST" ? "taken" : large);
  });
  Client client(server, upstream.port());
  client.await_ready();
  const auto patient = [&](const std::string& request) {
    RawSocket user(users_port(server), seconds(60));
    EXPECT_TRUE(user.send(request));
    return user.read_response();
  };
  const std::string host = std::string("Host: ") + kTunnelHost + "\r\n";
  const auto taken = patient("POST / HTTP/1.1\r\n" + host +
                             "Content-Length: " + std::to_string(kSize) + "\r\n\r\n" + large);
  EXPECT_EQ(taken.body, "taken");
  EXPECT_TRUE(came_whole);
  const auto given = patient("GET / HTTP/1.1\r\n" + host + "\r\n");
  EXPECT_TRUE(given.complete);
  EXPECT_TRUE(given.body == large);
}

TEST_P(PeerTunnelTraffic, AWebSocket) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router", [](const RecordedRequest&, RawSocket& socket) {
    socket.send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nearly");
    while (true) {
      const auto bytes = socket.read_some();
      if (bytes.empty()) return false;
      socket.send(bytes);
    }
  });
  Client client(server, upstream.port());
  client.await_ready();
  RawSocket user(users_port(server));
  user.send(std::string("GET /ws HTTP/1.1\r\nHost: ") + kTunnelHost +
            "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  EXPECT_THAT(user.read_until("\r\n\r\n"), HasSubstr("101"));
  EXPECT_EQ(user.read_exactly(5), "early");
  for (int i = 0; i < 100; ++i) {
    const auto text = "message " + std::to_string(i) + std::string(1000, '\xff');
    ASSERT_TRUE(user.send(text));
    ASSERT_EQ(user.read_exactly(text.size()), text);
  }
  EXPECT_THAT(client.status(), HasSubstr("1 connections; in total 1 requests"));
}

// Each event arrives before the next one is made.
TEST_P(PeerTunnelTraffic, ServerSentEvents) {
  PeerFrps server(GetParam());
  std::atomic<int> seen = 0;
  RecordingUpstream upstream("router", [&](const RecordedRequest&, RawSocket& socket) {
    socket.send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 5; ++i) {
      socket.send("9\r\ndata: " + std::to_string(i) + "\n\n\r\n");
      seen.wait(i);
    }
    return socket.send("0\r\n\r\n");
  });
  Client client(server, upstream.port());
  client.await_ready();
  RawSocket user(users_port(server));
  user.send(std::string("GET /events HTTP/1.1\r\nHost: ") + kTunnelHost +
            "\r\nAccept: text/event-stream\r\n\r\n");
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(user.read_until("data: " + std::to_string(i)), HasSubstr("data: "));
    EXPECT_FALSE(user.timed_out());
    ++seen;
    seen.notify_all();
  }
}

// All of them are at the upstream before any is answered.
TEST_P(PeerTunnelTraffic, TwoHundredRequestsAtATime) {
  constexpr int kUsers = 200;
  PeerFrps server(GetParam());
  std::latch all(kUsers);
  RecordingUpstream upstream("router", [&](const RecordedRequest& request, RawSocket& socket) {
    all.arrive_and_wait();
    return tunnel_echo(request, socket);
  });
  Client client(server, upstream.port());
  client.await_ready();
  std::vector<std::string> answers(kUsers);
  {
    std::vector<std::jthread> users;
    for (int i = 0; i < kUsers; ++i) {
      users.emplace_back([&, i] {
        answers[static_cast<std::size_t>(i)] =
            tunnel_call(server, "POST", "/", "user " + std::to_string(i)).body;
      });
    }
  }
  for (int i = 0; i < kUsers; ++i) {
    EXPECT_EQ(answers[static_cast<std::size_t>(i)], "user " + std::to_string(i));
  }
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

TEST_P(PeerTunnelTraffic, PoolsOfAnySize) {
  for (const char* size : {"0", "5"}) {
    PeerFrps server(GetParam());
    RecordingUpstream upstream("router", tunnel_echo);
    Client client(server, upstream.port(), {.flags = {std::string("--tunnel.pool-size=") + size}});
    client.await_ready();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(tunnel_call(server, "GET", "/").status, 200) << size;
  }
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
  EXPECT_TRUE(wait_until(
      [&] {
        return !client.log().contains("serving") || tunnel_call(server, "GET", "/").status != 200;
      },
      seconds(20), "the refusal"));
}

INSTANTIATE_TEST_SUITE_P(All, PeerTunnelTraffic, testing::Values(Version::v0_44, Version::v0_70),
                         [](const auto& param) {
                           return param.param == Version::v0_44 ? std::string("Frp044")
                                                                : std::string("Frp070");
                         });

}  // namespace
}  // namespace gitops::test
