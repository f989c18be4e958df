#include <atomic>
#include <csignal>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "peers/tunnel_bed.hpp"
#include "support/wait.hpp"

// Links that come and go: our tunnel-client and the real server of frp, each version, over wss that
// nginx ends.
namespace gitops::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::IsEmpty;
using Version = PeerFrps::Version;
using Client = TunnelClientProcess;

const Environment kGroup{{"TUNNEL_SERVER_GROUP_KEY", "of this runtime"}};

struct PeerTunnelLinks : testing::TestWithParam<Version> {
  void SetUp() override { GITOPS_REQUIRE_PEER(PeerFrps); }
};

// Users who ask again and again, a third of them with a body, until they are stopped.
class Users {
 public:
  Users(const PeerFrps& server, int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, &server, i](const std::stop_token& stop) {
        for (int n = i; !stop.stop_requested(); ++n) {
          const bool posts = n % 3 == 0;
          const auto body = "request " + std::to_string(n);
          const auto answer =
              posts ? tunnel_call(server, "POST", "/", body) : tunnel_call(server, "GET", "/");
          ++requests_;
          if (answer.status == 200 && answer.body == (posts ? body : "hello")) continue;
          const std::lock_guard lock(mutex_);
          failures_.push_back((posts ? "POST: " : "GET: ") + std::to_string(answer.status) + " " +
                              answer.body.substr(0, 100));
        }
      });
    }
  }
  std::vector<std::string> stop() {
    threads_.clear();
    return failures_;
  }
  int requests() const { return requests_; }

 private:
  std::atomic<int> requests_ = 0;
  std::mutex mutex_;
  std::vector<std::string> failures_;
  std::vector<std::jthread> threads_;
};

int links_that_serve(const Client& client) {
  return static_cast<int>(client.status().count_if([](const nlohmann::json& entry) {
    return entry["name"].get<std::string>().starts_with("link ") && entry["message"] == "serving" &&
           entry.contains("since");
  }));
}

TEST_P(PeerTunnelLinks, AGroupHasSeveralAndNoRequestFailsWhileTheyAreReplaced) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router", tunnel_echo);
  Client client(server, upstream.port(), {.env = kGroup});
  client.await_ready();
  EXPECT_TRUE(wait_until([&] { return links_that_serve(client) == 2; }, seconds(20), "two links"))
      << client.status() << client.log();
  Users users(server, 8);
  constexpr int kRounds = 8;
  for (int round = 1; round <= kRounds; ++round) {
    const auto before = client.sessions();
    EXPECT_TRUE(client.admin("/links/replace", "POST").ok());
    EXPECT_TRUE(
        wait_until([&] { return client.sessions() >= before + 2 && links_that_serve(client) == 2; },
                   seconds(20), "both links to be replaced"))
        << client.status();
  }
  EXPECT_THAT(users.stop(), IsEmpty()) << "of " << users.requests();
  EXPECT_GT(users.requests(), 500);
  EXPECT_GE(client.sessions(), 2 + 2 * kRounds);
  RecordProperty("requests", users.requests());
}

// Without a group the name belongs to one session: the client keeps one link, and swaps it.
TEST_P(PeerTunnelLinks, AServerThatTellsNothingGetsOne) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router", tunnel_echo);
  Client client(server, upstream.port());
  client.await_ready();
  EXPECT_EQ(client.status().state("link 2"), "unavailable") << client.status();
  EXPECT_THAT(client.status().message("link 2"), testing::StartsWith("not kept"));
  const auto start = steady_clock::now();
  EXPECT_TRUE(client.admin("/links/replace", "POST").ok());
  EXPECT_TRUE(wait_until([&] { return client.log().contains("replaced the link"); }, seconds(20),
                         "the swap"));
  client.await_ready();
  EXPECT_LT(steady_clock::now() - start, seconds(4));
  EXPECT_THAT(client.log(), testing::Not(HasSubstr("the server refuses the proxy")));
  EXPECT_EQ(tunnel_call(server, "GET", "/").status, 200);
  EXPECT_EQ(client.sessions(), 2);
}

TEST_P(PeerTunnelLinks, TwoClientsOfAGroupTakeTurnsWithoutAGap) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router", tunnel_echo);
  auto old_pod = std::make_optional<Client>(server, upstream.port(), TunnelOptions{.env = kGroup});
  old_pod->await_ready();
  Users users(server, 4);
  Client new_pod(server, upstream.port(), {.env = kGroup});
  new_pod.await_ready();
  EXPECT_EQ(old_pod->process().stop(), 0);
  EXPECT_TRUE(wait_until([n = users.requests(), &users] { return users.requests() > n + 50; },
                         seconds(20), "further requests"));
  EXPECT_THAT(users.stop(), IsEmpty()) << "of " << users.requests();
}

TEST_P(PeerTunnelLinks, ASecondServerServesWhileTheFirstIsAway) {
  PeerFrps first(GetParam());
  PeerFrps second(GetParam());
  RecordingUpstream upstream("router", tunnel_echo);
  Client client(
      first, upstream.port(),
      {.flags = {"--tunnel-server.insecure-skip-verify",
                 "--tunnel-server.host=localhost,localhost:" + std::to_string(second.wss_port())}});
  EXPECT_TRUE(wait_until([&] { return links_that_serve(client) == 2; }, seconds(20), "both"))
      << client.status();
  EXPECT_EQ(tunnel_call(first, "GET", "/").status, 200);
  EXPECT_EQ(tunnel_call(second, "GET", "/").status, 200);
  first.kill();
  EXPECT_TRUE(wait_until([&] { return links_that_serve(client) == 1; }, seconds(20), "the loss"));
  EXPECT_TRUE(client.is_ready());
  EXPECT_EQ(tunnel_call(second, "GET", "/").status, 200);
}

// A token that has changed is used at once, and a wrong one costs nothing.
TEST_P(PeerTunnelLinks, ATokenIsTakenOverWhileRequestsRun) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router", tunnel_echo);
  TempDir folder;
  write_file(folder / "token", "first");
  Client client(server, upstream.port(),
                {.env = kGroup, .flags = {"--authorization-file=" + (folder / "token").string()}});
  client.await_ready();
  Users users(server, 4);
  const auto before = client.sessions();
  write_file(folder / "token", "the second one");
  EXPECT_TRUE(wait_until([&] { return client.sessions() >= before + 2; }, seconds(30),
                         "links with the new token"))
      << client.log();
  EXPECT_TRUE(wait_until([&] { return links_that_serve(client) == 2; }, seconds(20), "two links"));
  EXPECT_THAT(users.stop(), IsEmpty()) << "of " << users.requests();
  EXPECT_THAT(client.log(), testing::Not(HasSubstr("the second one")));
}

TEST_P(PeerTunnelLinks, ARotatedCaIsTakenOverWithoutARestart) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router", tunnel_echo);
  TempDir folder;
  const CertificateAuthority somebody;
  write_file(folder / "ca.pem", read_file(somebody.ca_file()));
  Client client(server, upstream.port(), {.ca_file = (folder / "ca.pem").string()});
  EXPECT_TRUE(wait_until([&] { return client.admin("/readyz").body.contains("certificate"); },
                         seconds(20), "the refusal"))
      << client.admin("/readyz").body;
  write_file(folder / "ca.pem", read_file(server.ca_file()));
  client.await_ready();
  EXPECT_EQ(tunnel_call(server, "GET", "/").status, 200);
}

// frp's server keeps the connection for its next request for a minute.
TEST_P(PeerTunnelLinks, AStopDoesNotWaitForIdleConnections) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router", tunnel_echo);
  Client client(server, upstream.port(), {.drain = "30s"});
  client.await_ready();
  EXPECT_EQ(tunnel_call(server, "GET", "/").status, 200);
  EXPECT_EQ(client.status().count("link 1", "connections"), 1) << client.status();
  const auto start = steady_clock::now();
  client.process().signal(SIGTERM);
  EXPECT_EQ(client.process().wait(seconds(20)), 0);
  EXPECT_LT(steady_clock::now() - start, seconds(5));
}

TEST_P(PeerTunnelLinks, ARestartedClientServesAgain) {
  PeerFrps server(GetParam());
  RecordingUpstream upstream("router", tunnel_echo);
  for (int i = 0; i < 3; ++i) {
    Client client(server, upstream.port());
    client.await_ready();
    EXPECT_EQ(tunnel_call(server, "GET", "/").status, 200);
    if (i == 0) client.process().kill();
  }
}

INSTANTIATE_TEST_SUITE_P(All, PeerTunnelLinks, testing::Values(Version::v0_44, Version::v0_70),
                         [](const auto& param) {
                           return param.param == Version::v0_44 ? std::string("Frp044")
                                                                : std::string("Frp070");
                         });

}  // namespace
}  // namespace gitops::test
