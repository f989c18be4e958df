#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "peers/tunnel_bed.hpp"
#include "support/wait.hpp"

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

// -- what takes its time, with all servers at a time --

struct Patient {
  Patient(Version version, const PeerFrps::Options& options)
      : server(version, options),
        client(server, upstream.port(),
               {.flags = {std::string("--tunnel-server.tcp-mux=") +
                          (options.tcp_mux ? "true" : "false")}}),
        name(std::string(version == Version::v0_44 ? "0.44" : "0.70") +
             (options.tcp_mux ? "" : " without yamux")) {
    client.await_ready();
  }

  PeerFrps server;
  RecordingUpstream upstream{"router", tunnel_echo};
  Client client;
  std::string name;
  std::optional<milliseconds> found;
};

// The server answers nothing any more, and its connections stay: with and without yamux's pings.
TEST(PeerTunnelTimeouts, AServerThatFallsSilentIsFoundWithinFifteenSeconds) {
  GITOPS_REQUIRE_PEER(PeerFrps);
  std::vector<std::unique_ptr<Patient>> all;
  for (const auto version : {Version::v0_44, Version::v0_70}) {
    for (const bool mux : {true, false}) {
      all.push_back(std::make_unique<Patient>(version, PeerFrps::Options{.tcp_mux = mux}));
    }
  }
  const auto start = steady_clock::now();
  for (const auto& one : all) one->server.freeze();
  EXPECT_TRUE(wait_until(
      [&] {
        for (const auto& one : all) {
          if (one->found || one->client.is_ready()) continue;
          one->found = duration_cast<milliseconds>(steady_clock::now() - start);
        }
        return std::ranges::all_of(all, [](const auto& one) { return one->found.has_value(); });
      },
      seconds(30), "the losses"));
  for (const auto& one : all) {
    const auto found = one->found.value_or(milliseconds(30'000));
    std::printf("%s: found after %d ms\n", one->name.c_str(), static_cast<int>(found.count()));
    EXPECT_LT(found, milliseconds(15'000)) << one->name;
    one->server.thaw();
  }
  for (const auto& one : all) {
    one->client.await_ready();
    EXPECT_EQ(tunnel_call(one->server, "GET", "/").status, 200) << one->name;
  }
}

// A server with heartbeatTimeout loses clients that send no Ping (frp from 0.58 on sends none).
TEST(PeerTunnelTimeouts, AServerThatWantsHeartbeatsKeepsTheSession) {
  GITOPS_REQUIRE_PEER(PeerFrps);
  const PeerFrps::Options options{.heartbeat_timeout = 12};
  Patient old(Version::v0_44, options);
  Patient young(Version::v0_70, options);
  const auto is_lost = [](const Patient& one) {
    return !one.client.is_ready() || one.client.sessions() > 1;
  };
  EXPECT_FALSE(wait_until([&] { return is_lost(old) || is_lost(young); }, seconds(16),
                          "the loss of a session"));
  EXPECT_EQ(old.client.sessions(), 1);
  EXPECT_EQ(young.client.sessions(), 1);
}

}  // namespace
}  // namespace gitops::test
