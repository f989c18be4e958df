#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "peers/tunnel_bed.hpp"

// Faults between our tunnel-client and the real server of frp, each version, over wss that nginx
// ends.
namespace gitops::test {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using Version = PeerFrps::Version;
using Client = TunnelClientProcess;

struct PeerTunnelFaults : testing::TestWithParam<Version> {
  void SetUp() override { GITOPS_REQUIRE_PEER(PeerFrps); }
};

TEST_P(PeerTunnelFaults, AKilledServerServesAgainWithinTwoSeconds) {
  const int rounds = std::getenv("GITOPS_LONG") != nullptr ? 100 : 10;
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router", tunnel_echo);
  Client client(server, upstream.port());
  std::vector<milliseconds> times;
  for (int round = 0; round < rounds; ++round) {
    client.await_ready();
    std::this_thread::sleep_for(seconds(1));  // a link that was lost sooner is no good one
    const auto start = steady_clock::now();
    server.restart();
    ASSERT_TRUE(wait_until([&] { return tunnel_call(server, "GET", "/").status == 200; },
                           seconds(30), "users to be served", milliseconds(10)))
        << client.log();
    times.push_back(duration_cast<milliseconds>(steady_clock::now() - start));
  }
  std::ranges::sort(times);
  // One of a hundred may take longer.
  const auto p99 = times[times.size() - 1 - times.size() / 100];
  RecordProperty("p50_ms", static_cast<int>(times[times.size() / 2].count()));
  RecordProperty("p99_ms", static_cast<int>(p99.count()));
  std::printf("killed to serving again: p50 %d ms, p99 %d ms of %zu\n",
              static_cast<int>(times[times.size() / 2].count()), static_cast<int>(p99.count()),
              times.size());
  EXPECT_LT(p99, seconds(2));
}

// The server answers nothing any more, and its connections stay: with and without yamux's pings.
TEST_P(PeerTunnelFaults, AServerThatFallsSilentIsFoundWithinFifteenSeconds) {
  for (const bool mux : {true, false}) {
    PeerFrps server(GetParam(), {.tcp_mux = mux});
    RecordingUpstream upstream("router", tunnel_echo);
    Client client(server, upstream.port(),
                  {.flags = {std::string("--tunnel-server.tcp-mux=") + (mux ? "true" : "false")}});
    client.await_ready();
    const auto start = steady_clock::now();
    server.freeze();
    EXPECT_TRUE(wait_until([&] { return !client.is_ready(); }, seconds(30), "the loss"));
    const auto found = duration_cast<milliseconds>(steady_clock::now() - start);
    std::printf("found after %d ms\n", static_cast<int>(found.count()));
    EXPECT_LT(found, milliseconds(15'000));
    server.thaw();
    client.await_ready();
    EXPECT_EQ(tunnel_call(server, "GET", "/").status, 200);
  }
}

// A server with heartbeatTimeout loses clients that send no Ping (frp from 0.58 on sends none).
TEST_P(PeerTunnelFaults, AServerThatWantsHeartbeatsKeepsTheSession) {
  PeerFrps server(GetParam(), {.heartbeat_timeout = 12});
  RecordingUpstream upstream("router", tunnel_echo);
  Client client(server, upstream.port());
  client.await_ready();
  EXPECT_FALSE(wait_until([&] { return !client.is_ready() || client.sessions() > 1; }, seconds(16),
                          "the loss of the session"));
  EXPECT_EQ(client.sessions(), 1);
}

// frpc asks again after 30 s, so that a rolling update lost as much.
TEST_P(PeerTunnelFaults, ANameIsTakenOverSoonAfterItsOwnerHasGone) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router", tunnel_echo);
  auto old_pod = std::make_optional<Client>(server, upstream.port());
  old_pod->await_ready();
  Client new_pod(server, upstream.port());
  EXPECT_TRUE(wait_until([&] { return new_pod.admin("/readyz").body.contains("refused: "); },
                         seconds(20), "the refusal"));
  old_pod.reset();
  const auto start = steady_clock::now();
  new_pod.await_ready();
  EXPECT_LT(steady_clock::now() - start, seconds(7));
}

INSTANTIATE_TEST_SUITE_P(All, PeerTunnelFaults, testing::Values(Version::v0_44, Version::v0_70),
                         [](const auto& param) {
                           return param.param == Version::v0_44 ? std::string("Frp044")
                                                                : std::string("Frp070");
                         });

}  // namespace
}  // namespace gitops::test
