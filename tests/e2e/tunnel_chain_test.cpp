// The chain that a user's request takes: tunnel-server, tunnel-client, request-router, upstream, as
// programs. No request may fail while links are replaced and servers come and go.
//
// GITOPS_LONG=1: 10,000 requests for each test, and a second between replacements.
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "daemons/router_harness.hpp"
#include "daemons/tunnel_processes.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kUsers = 8;

bool is_long() {
  const char* value = std::getenv("GITOPS_LONG");
  return value != nullptr && std::string_view(value) == "1";
}

// Users who send requests from the constructor until finish().
class Users {
 public:
  struct Count {
    int requests = 0;
    int posts = 0;
    int connections = 0;
    int failed = -1;
  };

  Users(const std::filesystem::path& ca_file, std::uint16_t port) {
    go_to(port);
    process_.emplace(ProcessOptions{
        .argv = {"/usr/bin/python3",
                 (std::filesystem::path(GITOPS_SOURCE_DIR) / "tests/e2e/tunnel_users.py").string(),
                 ca_file.string(), kRuntimeHost, (folder_ / "port").string(),
                 (folder_ / "stop").string(), std::to_string(kUsers)},
        .log_file = folder_ / "log"});
  }
  // New connections go to this port.
  void go_to(std::uint16_t port) const {
    write_file(folder_ / "new-port", std::to_string(port));
    std::filesystem::rename(folder_ / "new-port", folder_ / "port");
  }
  Count finish() {
    write_file(folder_ / "stop", "");
    EXPECT_EQ(process_->wait(seconds(60)), 0);
    Count count;
    const auto text = log();
    const auto last = text.rfind('\n', text.size() - 2);
    std::sscanf(text.c_str() + (last == std::string::npos ? 0 : last + 1),
                "%d requests, %d posts, %d connections, %d failed", &count.requests, &count.posts,
                &count.connections, &count.failed);
    return count;
  }
  std::string log() const { return read_file(folder_ / "log"); }

 private:
  TempDir folder_;
  std::optional<Process> process_;
};

struct TunnelChain : testing::Test {
  void SetUp() override { signal(SIGPIPE, SIG_IGN); }

  // Each request must have come once, from the users' address and for their host. Host itself is
  // the upstream's own, as the router sends it.
  void expect_all_came_once(const Users::Count& count) {
    std::map<std::string, int> times;
    for (const auto& request : bed.app_proxy().requests()) {
      ++times[request.target()];
      ASSERT_EQ(request.header("X-Forwarded-For"), "127.0.0.7, 127.0.0.1") << request.head;
      ASSERT_EQ(request.header("X-Forwarded-Host"), kRuntimeHost) << request.head;
      ASSERT_EQ(request.header("X-Forwarded-Proto"), "https") << request.head;
    }
    EXPECT_EQ(times.size(), static_cast<std::size_t>(count.requests));
    for (const auto& [target, number] : times) EXPECT_EQ(number, 1) << target;
  }

  static void await_server(const OwnTunnelServer& server) {
    require_until([&] { return server.serves(); }, seconds(60), "the tunnel");
  }
  // As a load balancer does that sees the old one not ready.
  static void begin_drain(OwnTunnelServer& old, const OwnTunnelServer& next, const Users& users) {
    await_server(next);
    old.process().signal(SIGTERM);
    require_until([&] { return !old.admin("/readyz").ok(); }, seconds(30), "the drain");
    users.go_to(next.port);
  }
  // Waits for the end of the drained server, and starts it again.
  static void end_drain(OwnTunnelServer& old) {
    EXPECT_EQ(old.process().wait(seconds(25)), 0) << old.log();
    old.start();
  }

  std::atomic<int> answered = 0;
  RouterHarness bed{
      {.environment = {{"TRUSTED_PROXIES", "127.0.0.1"}},
       .app_proxy = [this](const RecordedRequest& request, RawSocket& socket) {
         ++answered;
         const auto name = request.target().substr(std::string_view("/app-proxy/").size());
         return RecordingUpstream::reply(socket, request.body.empty() ? name : request.body);
       }}};
  CertificateAuthority authority;
};

// The one test of the server's whole text; the others compare its entries.
TEST_F(TunnelChain, TheServersStatusAsTextHasALineForEachClient) {
  const OwnTunnelServer server(authority);
  OwnTunnelClient client({server.tunnel_port}, authority.ca_file(), bed.port(),
                         {"--tunnel-server.links=1"});
  await_server(server);
  EXPECT_THAT(server.admin("/statusz").body,
              testing::MatchesRegex("tunnel-server [0-9.]+\n"
                                    "up [0-9hms]+\n"
                                    "ready\n"
                                    "\n"
                                    "hosts: 1\n"
                                    "connections of users: 0\n"
                                    "clients: 1\n"
                                    "  127.0.0.1: serving since 20[0-9T:-]+Z, "
                                    "hosts: acc-rt.example.test, 0 connections of users\n"));
  EXPECT_EQ(client.process().stop(seconds(20)), 0);
}

TEST_F(TunnelChain, NoRequestFailsWhileLinksAreReplaced) {
  const int wanted = is_long() ? 10'000 : 800;
  const auto between = is_long() ? milliseconds(1000) : milliseconds(150);
  const OwnTunnelServer server(authority, {"--tunnel.links=4"});
  OwnTunnelClient client({server.tunnel_port}, authority.ca_file(), bed.port(),
                         {"--tunnel-server.links=4"});
  require_until([&] { return client.is_ready() && server.serves(); }, seconds(20), "the tunnel");
  Users users(authority.ca_file(), server.port);
  require_until([&] { return answered >= wanted / 10; }, seconds(60), "the first requests");

  const auto sessions = client.sum("gitops_tunnel_client_sessions_total");
  const auto end = std::chrono::steady_clock::now() + seconds(is_long() ? 600 : 120);
  int replacements = 0;
  while (answered < wanted || replacements < 20) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << users.log() << client.log();
    EXPECT_TRUE(client.admin("/links/replace", "POST").ok());
    ++replacements;
    std::this_thread::sleep_for(between);
  }
  const auto count = users.finish();
  // Each link is replaced once a second at most, however often it is asked for.
  const auto replaced = client.sum("gitops_tunnel_client_sessions_total") - sessions;
  EXPECT_GE(replaced, 8) << client.log();
  std::printf("%d requests, %d of them POST, on %d connections; %d links replaced; %d failed\n",
              count.requests, count.posts, count.connections, static_cast<int>(replaced),
              count.failed);
  EXPECT_EQ(count.failed, 0) << users.log() << client.log() << server.log();
  EXPECT_EQ(count.connections, kUsers) << "users had to connect again";
  EXPECT_GE(count.posts, count.requests / 3);
  expect_all_came_once(count);
  EXPECT_EQ(client.process().stop(seconds(20)), 0);
}

TEST_F(TunnelChain, NoRequestFailsWhileServersAreDrainedAndReplaced) {
  const int wanted = is_long() ? 10'000 : 800;
  const std::vector<std::string> flags{"--drain-delay=500ms"};
  std::array<OwnTunnelServer, 2> servers{OwnTunnelServer(authority, flags),
                                         OwnTunnelServer(authority, flags)};
  OwnTunnelClient client({servers[0].tunnel_port, servers[1].tunnel_port}, authority.ca_file(),
                         bed.port());
  await_server(servers[0]);
  Users users(authority.ca_file(), servers[0].port);
  require_until([&] { return answered >= wanted / 10; }, seconds(60), "the first requests");

  const auto end = std::chrono::steady_clock::now() + seconds(is_long() ? 900 : 120);
  int drains = 0;
  while (answered < wanted || drains < 3) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << users.log() << client.log();
    auto& old = servers[static_cast<std::size_t>(drains) % 2];
    auto& next = servers[static_cast<std::size_t>(drains + 1) % 2];
    begin_drain(old, next, users);
    end_drain(old);
    ++drains;
  }
  const auto count = users.finish();
  std::printf("%d requests, %d of them POST, on %d connections; %d servers drained; %d failed\n",
              count.requests, count.posts, count.connections, drains, count.failed);
  EXPECT_EQ(count.failed, 0) << users.log() << client.log() << servers[0].log() << servers[1].log();
  EXPECT_GE(count.connections, kUsers * (drains + 1)) << "users stayed with a drained server";
  EXPECT_GE(count.posts, count.requests / 3);
  expect_all_came_once(count);
  EXPECT_EQ(client.process().stop(seconds(20)), 0);
}

// Two faults at once, each pair in turn, that a user can be spared: links are replaced, a server is
// drained, and a server or the client stands still for a moment, as on a busy machine.
TEST_F(TunnelChain, NoRequestFailsThroughPairsOfFaults) {
  const int wanted = is_long() ? 10'000 : 800;
  const std::vector<std::string> flags{"--drain-delay=500ms"};
  std::array<OwnTunnelServer, 2> servers{OwnTunnelServer(authority, flags),
                                         OwnTunnelServer(authority, flags)};
  OwnTunnelClient client({servers[0].tunnel_port, servers[1].tunnel_port}, authority.ca_file(),
                         bed.port());
  for (const auto& server : servers) await_server(server);
  Users users(authority.ca_file(), servers[0].port);
  require_until([&] { return answered >= wanted / 10; }, seconds(60), "the first requests");

  std::size_t serving = 0;
  const auto freeze = [](Process& process) {
    process.signal(SIGSTOP);
    std::this_thread::sleep_for(milliseconds(300));
    process.signal(SIGCONT);
  };
  const std::array<std::function<void()>, 4> faults{
      [&] { EXPECT_TRUE(client.admin("/links/replace", "POST").ok()); },
      [&] { freeze(client.process()); }, [&] { freeze(servers.at(serving).process()); },
      [&] { begin_drain(servers.at(serving), servers.at(1 - serving), users); }};
  const auto end = std::chrono::steady_clock::now() + seconds(is_long() ? 900 : 180);
  int pairs = 0;
  for (std::size_t first = 0; answered < wanted || pairs < 6; first = (first + 1) % 3) {
    for (std::size_t second = first + 1; second < faults.size(); ++second, ++pairs) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << users.log() << client.log();
      std::thread other(faults.at(first));
      faults.at(second)();
      other.join();
      if (second == 3) {
        end_drain(servers.at(serving));
        serving = 1 - serving;
      }
      const int seen = answered;
      require_until([&] { return answered >= seen + kUsers; }, seconds(30), "requests go on");
    }
  }
  const auto count = users.finish();
  std::printf("%d requests, %d of them POST, through %d pairs of faults; %d failed\n",
              count.requests, count.posts, pairs, count.failed);
  EXPECT_EQ(count.failed, 0) << users.log() << client.log() << servers[0].log() << servers[1].log();
  expect_all_came_once(count);
  EXPECT_EQ(client.process().stop(seconds(20)), 0);
}

// Neither what a user says about itself nor what it says about others reaches the upstream.
TEST_F(TunnelChain, AC19_AUserCannotSayWhoItIs) {
  const OwnTunnelServer server(authority);
  OwnTunnelClient client({server.tunnel_port}, authority.ca_file(), bed.port());
  require_until([&] { return client.is_ready() && server.serves(); }, seconds(20), "the tunnel");
  const auto answer =
      http_call({.url = "https://localhost:" + std::to_string(server.port) + "/app-proxy/forged",
                 .headers = {std::string("Host: ") + kRuntimeHost, "X-Forwarded-For: 10.66.66.66",
                             "X_Forwarded_For: 10.66.66.66", "X-Forwarded-Host: evil.test",
                             "X-Forwarded-Proto: http", "X-Forwarded-Port: 66",
                             "Forwarded: for=10.66.66.66;host=evil.test", "X-Real-IP: 10.66.66.66",
                             "Connection: X-Forwarded-For, X-Forwarded-Host"},
                 .ca_file = authority.ca_file()});
  ASSERT_EQ(answer.status, 200) << answer.body;
  ASSERT_EQ(bed.app_proxy().requests().size(), 1U);
  const auto request = bed.app_proxy().requests()[0];
  EXPECT_EQ(request.header("X-Forwarded-For"), "127.0.0.1, 127.0.0.1");
  EXPECT_EQ(request.header("X-Forwarded-Host"), kRuntimeHost);
  EXPECT_EQ(request.header("X-Forwarded-Proto"), "https");
  EXPECT_THAT(request.head, testing::Not(testing::HasSubstr("10.66.66.66")));
  EXPECT_THAT(request.head, testing::Not(testing::HasSubstr("evil.test")));
}

}  // namespace
}  // namespace gitops::test
