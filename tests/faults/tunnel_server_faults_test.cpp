// Faults between our tunnel-server, clients and users, with the real programs: kills, lost packets, a
// restart under a thousand clients, full disks, wrong clocks, a certificate that expires, users who do
// not read.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "common/core/process.hpp"
#include "common/net/connector.hpp"
#include "faults/tunnel_server_faults_bed.hpp"
#include "support/preload.hpp"
#include "support/run_coro.hpp"
#include "support/status_page.hpp"
#include "support/tcp_relay.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"
#include "test_http/raw_http.hpp"
#include "tunnel-client/link_keeper.hpp"

namespace gitops::test {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TEST_F(TunnelFaults, AKilledServerServesAgainWithinTwoSeconds) {
  OwnTunnel tunnel;
  Kills kills("the server");
  for (int round = 0; round < Kills::rounds(); ++round) {
    // A link that was lost sooner is no good one, and the client waits longer each time.
    std::this_thread::sleep_for(seconds(1));
    kills.time(
        [&] {
          tunnel.server.process().kill();
          tunnel.server.start();
        },
        [&] { return tunnel.serves(); });
  }
  EXPECT_LT(kills.p99(), seconds(2));
}

TEST_F(TunnelFaults, AKilledClientServesAgainWithinTwoSeconds) {
  OwnTunnel tunnel;
  Kills kills("the client");
  for (int round = 0; round < Kills::rounds(); ++round) {
    kills.time([&] { tunnel.start_client(); }, [&] { return tunnel.serves(); });
  }
  EXPECT_LT(kills.p99(), seconds(2));
}

// The limits of both ends are known to both: nobody waits in vain.
TEST_F(TunnelFaults, AClientWhoseLinksAreNearlyFullOpensFurtherOnes) {
  const TempDir folder;
  write_file(folder / "runtimes", "acc-rt runtime-token\n");
  write_file(folder / "token", "runtime-token");
  ServerProgram server({.flags = {"--runtimes-file=" + (folder / "runtimes").string(),
                                  "--tunnel.max-streams=32"}});  // 20 users for each link
  std::counting_semaphore<100> go(0);
  RecordingUpstream upstream("router", [&go](const RecordedRequest&, RawSocket& socket) {
    EXPECT_TRUE(go.try_acquire_for(seconds(40)));
    return RecordingUpstream::reply(socket, "done");
  });
  ClientProgram client(server.tunnel_port, upstream.port(),
                       {.flags = {"--tunnel-server.protocol=tcp", "--tunnel-server.tls=false",
                                  "--authorization-file=" + (folder / "token").string()}});
  const auto serves = [&client](int link) {
    return [&client, link] {
      return client.status().message("link " + std::to_string(link)) == "serving";
    };
  };
  require_until(serves(2), seconds(20), "both links");
  std::vector<RawSocket> users;
  const auto come = [&](std::size_t count) {
    while (users.size() < count) {
      users.emplace_back(server.port, seconds(30));
      users.back().send("GET / HTTP/1.1\r\nHost: " + std::string(kHost) + "\r\n\r\n");
    }
    require_until([&] { return upstream.requests().size() == count; }, seconds(20),
                  "the users to be served");
  };
  // However these are spread, each link has at least 16 of its 20.
  come(36);
  require_until(serves(3), seconds(20), "another link");
  come(50);
  go.release(50);
  for (auto& user : users) EXPECT_EQ(user.read_response().body, "done");
}

// Nothing is reset, and nothing arrives.
TEST_F(TunnelFaults, AC20_LostPacketsAreFoundByBothSidesWithin15Seconds) {
  run_coro(
      []() -> Task<> {
        ServerProgram server;
        RecordingUpstream upstream("router");
        TcpRelay relay(co_await asio::this_coro::executor, "127.0.0.1", server.tunnel_port);
        ClientProgram client(relay.port(), upstream.port());
        const auto serves = [&] { return client.is_ready() && serves_somebody(server); };
        EXPECT_TRUE(co_await eventually(serves, "a tunnel that serves")) << client.log();
        relay.hold();
        const auto begin = Clock::now();
        std::map<std::string, milliseconds> found;
        EXPECT_TRUE(co_await eventually(
            [&] {
              const auto now = duration_cast<milliseconds>(Clock::now() - begin);
              if (!client.is_ready()) found.emplace("client", now);
              if (!serves_somebody(server)) found.emplace("server", now);
              return found.size() == 2;
            },
            "the broken link at both ends"));
        std::printf("found by the client after %d ms, by the server after %d ms\n",
                    static_cast<int>(found["client"].count()),
                    static_cast<int>(found["server"].count()));
        EXPECT_LT(found["client"], seconds(15));
        EXPECT_LT(found["server"], seconds(15));
        relay.release();
        EXPECT_TRUE(co_await eventually(serves, "a tunnel that serves")) << client.log();
        co_await relay.stop();
      },
      seconds(120));
}

// A link as tunnel-client keeps it.
struct LightClient {
  LightClient(const Executor& executor, Metrics& metrics, int number,
              tunnel_client::Session::Dial dial, tunnel_client::Session::Connect connect)
      : settings{.server = "tcp://localhost",
                 .dial = std::move(dial),
                 .connect = std::move(connect),
                 .session =
                     [number] {
                       const auto name = "c-" + std::to_string(number);
                       tunnel_client::Session::Options options;
                       options.control.token = Secret("s3cret");
                       options.control.login = {.version = "1.0.0"};
                       options.control.proxies = {
                           {.proxy_name = name, .proxy_type = "http", .subdomain = name}};
                       options.control.retry = {.initial = seconds(2), .max = seconds(5)};
                       return options;
                     }},
        changed(executor),
        keeper(executor, settings, number, tunnel_client::Traffic(metrics, {{"link", "1"}}),
               changed, static_cast<std::uint64_t>(number)) {
    keeper.start();
    keeper.want(true);
  }
  [[nodiscard]] bool serves() const { return keeper.not_serving_because().empty(); }

  tunnel_client::LinkSettings settings;
  Event changed;
  tunnel_client::LinkKeeper keeper;
};

TEST_F(TunnelFaults, AC22_AThousandClientsComeBackToARestartedServerWithoutAHerd) {
  constexpr int kClients = 1'000;
  ASSERT_GE(raise_open_files(kClients + 200), kClients + 200U);
  ServerProgram server;
  run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        Metrics metrics;
        net::Resolver names(metrics);
        std::vector<Clock::time_point> attempts;
        const auto dial = [&](Deadline deadline) -> Task<Result<std::unique_ptr<net::Channel>>> {
          attempts.push_back(Clock::now());
          co_return co_await net::connect_host(names, "127.0.0.1", server.tunnel_port, {},
                                               deadline);
        };
        const auto connect = [](const std::string&,
                                Deadline) -> Task<Result<std::unique_ptr<net::Channel>>> {
          co_return fail(ErrorCode::unavailable, "no upstream");
        };
        std::vector<std::unique_ptr<LightClient>> clients;
        for (int i = 0; i < kClients; ++i) {
          clients.push_back(std::make_unique<LightClient>(executor, metrics, i, dial, connect));
        }
        const auto all_serve = [&] { return std::ranges::all_of(clients, &LightClient::serves); };
        const auto why = [&] {
          for (const auto& client : clients) {
            if (!client->serves()) return client->keeper.not_serving_because();
          }
          return std::string("all serve");
        };
        EXPECT_TRUE(co_await eventually(all_serve, "all clients to serve", seconds(60))) << why();
        co_await sleep_for(seconds(1));  // sessions that served for less are no good ones
        attempts.clear();
        server.process().kill();
        const auto killed = Clock::now();
        // It is away for two seconds, in which everybody notices and tries.
        co_await sleep_for(seconds(2));
        server.start();
        const auto started = Clock::now();
        EXPECT_TRUE(co_await eventually(all_serve, "all clients to serve", seconds(60))) << why();
        const auto back = duration_cast<milliseconds>(Clock::now() - started);
        std::map<std::int64_t, int> spread;  // attempts in each tenth of a second
        int most = 0;                        // of those that reach the new server
        for (const auto at : attempts) {
          const auto count = ++spread[duration_cast<milliseconds>(at - killed).count() / 100];
          if (at >= started) most = std::max(most, count);
        }
        std::printf("all %d back after %d ms; %zu attempts, by tenths of a second:", kClients,
                    static_cast<int>(back.count()), attempts.size());
        for (const auto& [tenth, count] : spread) {
          std::printf(" %d:%d", static_cast<int>(tenth), count);
        }
        std::printf("\n");
        EXPECT_LT(back, seconds(10));
        // Without jitter all of them would come in one. The first attempts are no measure: they meet
        // no server, and a busy machine makes those of a quarter of a second one.
        EXPECT_LT(most, 0.5 * kClients);
        EXPECT_LT(attempts.size(), 12U * kClients);
        for (const auto& client : clients) co_await client->keeper.end();
      },
      seconds(180));
}

// What the programs write are log lines and nothing else.
TEST_F(TunnelFaults, AFullDiskStopsNobody) {
  ServerProgram server({.log_file = "/dev/full"});
  RecordingUpstream upstream("router");
  const ClientProgram client(server.tunnel_port, upstream.port(), {.log_file = "/dev/full"});
  require_until([&] { return server.get().status == 200; }, seconds(30), "the tunnel");
  for (int i = 0; i < 50; ++i) EXPECT_EQ(server.get().body, "router");
  server.process().kill();
  server.start();
  EXPECT_TRUE(
      wait_until([&] { return server.get().status == 200; }, seconds(20), "the tunnel again"));
}

// The token's key carries a time, which neither side of frp checks: a clock that is wrong must not
// take a runtime off the net.
TEST_F(TunnelFaults, AC22_AWrongClockStopsNobody) {
  TempDir folder;
  for (const auto ahead : {-std::chrono::hours(24 * 400), std::chrono::hours(7)}) {
    set_clock(folder / "client", ahead);
    set_clock(folder / "server", -ahead);
    ServerProgram server(
        {.clock = folder / "server", .flags = {"--auth-scopes=HeartBeats,NewWorkConns"}});
    RecordingUpstream upstream("router");
    const ClientProgram client(
        server.tunnel_port, upstream.port(),
        {.clock = folder / "client",
         .flags = {"--tunnel-server.protocol=tcp", "--tunnel-server.tls=false",
                   "--tunnel-server.auth-scopes=HeartBeats,NewWorkConns"}});
    require_until([&] { return server.get().status == 200; }, seconds(30), "the tunnel");
    // It jumps while the session lives.
    set_clock(folder / "client", -ahead);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(server.get().body, "router");
    EXPECT_TRUE(client.is_ready());
  }
}

TEST_F(TunnelFaults, AC22_ACertificateThatExpiresEndsNoStream) {
  TempDir folder;
  const auto clock = folder / "clock";
  set_clock(clock, seconds(0));
  CertificateAuthority authority;
  const auto issue = [&](int days) {
    return authority.issue(
        {.common_name = "tunnel", .organization = {}, .alt_names = {"localhost"}, .days = days});
  };
  const auto certificate = issue(1);
  ServerProgram server({.clock = clock,
                        .flags = {"--tunnel.tls-certificate-file=" + certificate.cert_file.string(),
                                  "--tunnel.tls-key-file=" + certificate.key_file.string(),
                                  "--tunnel.require-tls"}});
  std::atomic<int> wanted = 0;
  RecordingUpstream upstream("router", [&](const RecordedRequest& request, RawSocket& socket) {
    if (request.target() != "/events") return RecordingUpstream::reply(socket, "router");
    socket.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    for (int i = 1; i <= 3; ++i) {
      wanted.wait(i - 1);
      if (!socket.send("data: " + std::to_string(i) + "\n\n")) break;
    }
    return false;
  });
  ClientProgram client(server.tunnel_port, upstream.port(),
                       {.clock = clock,
                        .flags = {"--tunnel-server.protocol=wss",
                                  "--tunnel-server.ca-file=" + authority.ca_file().string()}});
  require_until([&] { return server.get().status == 200; }, seconds(30), "the tunnel");
  RawSocket user(server.port);
  user.send(std::string("GET /events HTTP/1.1\r\nHost: ") + kHost + "\r\n\r\n");
  const auto next_event = [&] {
    const int number = ++wanted;
    wanted.notify_all();
    return user.read_until("data: " + std::to_string(number) + "\n\n");
  };
  EXPECT_THAT(next_event(), HasSubstr("data: 1"));

  set_clock(clock, std::chrono::hours(30));  // the authority is valid for two days
  EXPECT_THAT(next_event(), HasSubstr("data: 2"));
  EXPECT_EQ(server.get().body, "router");
  // A new connection is refused, and the present one goes on.
  EXPECT_TRUE(client.admin("/links/replace", "POST").ok());
  EXPECT_TRUE(wait_until([&] { return client.log().contains("expired"); }, seconds(20),
                         "the refusal of the certificate"))
      << client.log();
  EXPECT_TRUE(client.is_ready());
  EXPECT_THAT(next_event(), HasSubstr("data: 3"));
  EXPECT_EQ(server.get().body, "router");
  server.process().kill();
  server.start();
  EXPECT_TRUE(wait_until([&] { return client.admin("/readyz").body.contains("expired"); },
                         seconds(20), "the reason"))
      << client.admin("/readyz").body;
  // Another one in its place is taken over without a restart.
  const auto renewed = issue(2);
  std::filesystem::copy_file(renewed.key_file, certificate.key_file,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(renewed.cert_file, certificate.cert_file,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(wait_until([&] { return server.get().status == 200; }, seconds(60), "the tunnel"))
      << client.log() << server.log();
}

// AC-21: each of them holds its window at the server and a little more; others are as fast as before.
TEST_F(TunnelFaults, AC21_UsersWhoDoNotReadHoldBoundedMemoryAndSlowNobody) {
  constexpr std::size_t kUsers = 30;
  ServerProgram server;
  std::atomic<bool> done = false;
  std::atomic<std::size_t> sent = 0;
  RecordingUpstream upstream("router", [&](const RecordedRequest& request, RawSocket& socket) {
    if (request.target() != "/endless") return RecordingUpstream::reply(socket, "router");
    socket.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    const std::string block(64 * 1024, 'x');
    while (!done && socket.send(block)) sent += block.size();
    return false;
  });
  ClientProgram client(server.tunnel_port, upstream.port());
  require_until([&] { return server.get().status == 200; }, seconds(30), "the tunnel");
  for (int i = 0; i < 100; ++i) (void)server.get();
  const auto before = server.memory();
  std::vector<std::unique_ptr<RawSocket>> stalled;
  for (std::size_t i = 0; i < kUsers; ++i) {
    stalled.push_back(std::make_unique<RawSocket>(server.port));
    stalled.back()->send(std::string("GET /endless HTTP/1.1\r\nHost: ") + kHost + "\r\n\r\n");
  }
  // Until nothing more fits anywhere.
  std::size_t last = 1;
  EXPECT_TRUE(wait_until([&] { return sent > 0 && std::exchange(last, sent) == sent; }, seconds(60),
                         "the stall", milliseconds(1'000)));
  const auto each = (server.memory() - std::min(before, server.memory())) / kUsers;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(server.get().body, "router");
  const auto took = duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
  std::printf("%zu users who do not read: %zu KiB each; 50 other requests in %d ms\n", kUsers,
              each / 1024, static_cast<int>(took.count()));
  // The window, twice, since a string grows so, and what lies between.
  EXPECT_LT(each, 3U * 1024 * 1024);
  EXPECT_LT(took, seconds(10));
  done = true;
  for (const auto& user : stalled) user->reset();
}

}  // namespace
}  // namespace gitops::test
