#include "tunnel-client/link_keeper.hpp"

#include <array>
#include <set>

#include <gmock/gmock.h>

#include "common/net/memory_channel.hpp"
#include "support/run_coro.hpp"
#include "support/status_page.hpp"
#include "support/wait.hpp"
#include "tunnel-client/scripted_server.hpp"

namespace gitops::tunnel_client {
namespace {

using net::Channel;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

// One link, and a server for each of its sessions.
struct Fixture {
  explicit Fixture(const Executor& executor, std::uint64_t seed = 1)
      : changed(executor), traffic(metrics, {{"link", "1"}}) {
    settings.server = "wss://server:443";
    settings.dial = [this, executor](Deadline) -> Task<Result<std::unique_ptr<Channel>>> {
      dials.push_back(Clock::now());
      if (is_down) co_return fail(ErrorCode::unavailable, "connection refused");
      auto [near, far] = net::MemoryChannel::pair(executor);
      auto& server =
          *servers.emplace_back(std::make_unique<ScriptedServer>(executor, std::move(far)));
      server.run_id = "run-" + std::to_string(servers.size());
      server.links = links;
      server.login_error = login_error;
      // As frp's server: a name belongs to one session, unless it is one of a group.
      auto* number = &server;
      server.judge = [this, number](const tunnel::NewProxy&) -> std::string {
        if (!proxy_error.empty()) return proxy_error;
        if (links == 1 && !owners.empty()) return "proxy [a] already exists";
        owners.insert(number);
        most_owners = std::max(most_owners, owners.size());
        return {};
      };
      server.on_closed = [this, number](const std::string&) {
        owners.erase(number);
        if (owners.empty()) ++gaps;
      };
      changed.notify_all();
      co_return std::move(near);
    };
    settings.connect = [this, executor](const std::string&,
                                        Deadline) -> Task<Result<std::unique_ptr<Channel>>> {
      auto [ours, theirs] = net::MemoryChannel::pair(executor);
      upstream.push_back(std::move(theirs));
      changed.notify_all();
      co_return std::move(ours);
    };
    settings.session = [this] {
      Session::Options options;
      options.link.first_stream = std::exchange(first_stream, tunnel::yamux::kNoStream);
      options.control.login = {.version = "1.0.0", .pool_count = 1};
      options.control.proxies = {{.proxy_name = "a", .proxy_type = "http", .subdomain = "a"}};
      return options;
    };
    keeper.emplace(executor, settings, 1, traffic, changed, seed);
    keeper->start();
    keeper->want(true);
  }

  bool serves() { return keeper->session() && keeper->not_serving_because().empty(); }
  Task<> serve() {
    CO_ASSERT_TRUE(co_await test::eventually([this] { return serves(); }, "a link that serves"));
  }
  // The sessions of the first servers are over.
  Task<> until_ended(std::size_t count) {
    CO_ASSERT_TRUE(co_await test::eventually(
        [this, count] {
          return std::ranges::all_of(servers.begin(), servers.begin() + static_cast<long>(count),
                                     [](const auto& server) { return server->has_ended; });
        },
        "the end of the first sessions"));
  }

  Metrics metrics;
  Event changed;
  Traffic traffic;
  LinkSettings settings;
  bool is_down = false;
  std::int64_t links = 2;
  tunnel::yamux::StreamId first_stream = tunnel::yamux::kNoStream;  // of the next session
  std::string login_error;
  std::string proxy_error;
  std::vector<Clock::time_point> dials;
  std::set<ScriptedServer*> owners;
  std::size_t most_owners = 0;
  int gaps = 0;  // moments at which nobody offered the host
  std::vector<std::unique_ptr<ScriptedServer>> servers;
  std::vector<std::unique_ptr<Channel>> upstream;
  std::optional<LinkKeeper> keeper;
};

void run(const std::function<Task<>(Fixture&)>& body, std::uint64_t seed = 1) {
  test::run_in_test_time([&]() -> Task<> {
    Fixture bed(co_await asio::this_coro::executor, seed);
    co_await body(bed);
    co_await bed.keeper->end();
    for (const auto& server : bed.servers) co_await server->stop();
  });
}

Task<std::string> read(Channel& channel) {
  std::array<char, 4096> room;
  const auto size = co_await channel.read_some(room);
  if (!size) co_return "(" + size.error().message + ")";
  co_return *size == 0 ? "(end)" : std::string(room.data(), *size);
}

TEST(LinkKeeper, ConnectsAgainAndTakesOverItsSession) {
  run([](Fixture& bed) -> Task<> {
    co_await bed.serve();
    EXPECT_EQ(bed.servers[0]->login->run_id, "");
    co_await sleep_for(seconds(40));
    const auto lost = Clock::now();
    bed.owners.clear();
    co_await bed.servers[0]->stop();
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return bed.servers.size() == 2 && bed.serves(); }, "a second session that serves"));
    EXPECT_LE(Clock::now() - lost, seconds(1));
    EXPECT_EQ(bed.servers[1]->login->run_id, "run-1");
  });
}

// It serves and is lost at once, again and again.
TEST(LinkKeeper, AServerThatDropsItsClientsIsAskedLessAndLess) {
  run([](Fixture& bed) -> Task<> {
    const auto end = deadline_after(minutes(5));
    while (Clock::now() < end) {
      co_await bed.serve();
      const auto count = bed.servers.size();
      bed.owners.clear();
      co_await bed.servers.back()->stop();
      CO_ASSERT_TRUE(
          co_await test::eventually([&] { return bed.servers.size() > count; }, "another session"));
    }
    EXPECT_LE(bed.dials.size(), 60u);
  });
}

TEST(LinkKeeper, AC22_AServerThatIsDownIsAskedLessAndLess) {
  run([](Fixture& bed) -> Task<> {
    bed.is_down = true;
    co_await sleep_for(minutes(10));
    EXPECT_EQ(bed.keeper->not_serving_because(), "connection refused");
    // A random wait of at most 30 s, 15 s on average.
    EXPECT_GE(bed.dials.size(), 25u);
    EXPECT_LE(bed.dials.size(), 80u);
    bed.is_down = false;
    const auto back = Clock::now();
    co_await bed.serve();
    EXPECT_LE(Clock::now() - back, seconds(31));
  });
}

TEST(LinkKeeper, ARefusedLoginIsToldAndTriedAgain) {
  run([](Fixture& bed) -> Task<> {
    bed.login_error = "token in login doesn't match";
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return bed.servers.size() == 3; }, "the third session"));
    EXPECT_THAT(bed.keeper->not_serving_because(), HasSubstr("token in login doesn't match"));
    EXPECT_EQ(bed.keeper->status().state, StatusState::failed);
    EXPECT_THAT(bed.keeper->status().message, HasSubstr("token in login doesn't match"));
    bed.login_error.clear();
    co_await bed.serve();
  });
}

TEST(LinkKeeper, ReplacesASessionWithoutAGap) {
  run([](Fixture& bed) -> Task<> {
    co_await bed.serve();
    auto user = co_await bed.servers[0]->connect("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.upstream.size() == 1; },
                                             "a connection to the upstream"));
    bed.keeper->replace();
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          return bed.servers.size() == 2 && bed.owners.size() == 1 &&
                 bed.owners.contains(bed.servers[1].get());
        },
        "the host at the second session"));
    EXPECT_EQ(bed.gaps, 0);
    EXPECT_EQ(bed.most_owners, 2u);
    EXPECT_TRUE(bed.serves());
    const test::StatusPage status({bed.keeper->status()});
    EXPECT_EQ(status.message("replaced session"), "being left") << status;
    EXPECT_EQ(status.count("replaced session", "connections"), 1);
    // The request of the old session is answered, and the session ends behind it.
    co_await sleep_for(seconds(30));
    CO_ASSERT_OK(co_await bed.upstream[0]->write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    EXPECT_THAT(co_await read(*user), HasSubstr("ok"));
    co_await bed.until_ended(1);
    EXPECT_TRUE(bed.serves());
    EXPECT_FALSE(bed.servers[1]->has_ended);
  });
}

// A server resets streams beyond the last id for ever, and pings go on.
TEST(LinkKeeper, ASessionWhoseStreamIdsRunOutIsReplacedWithoutAGap) {
  run([](Fixture& bed) -> Task<> {
    bed.first_stream = tunnel::yamux::Session::kWornOut - 5;  // control stream, pool, a user
    co_await bed.serve();
    auto user = co_await bed.servers[0]->connect("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          return bed.servers.size() == 2 && bed.owners.size() == 1 &&
                 bed.owners.contains(bed.servers[1].get());
        },
        "the host at the second session"));
    EXPECT_EQ(bed.gaps, 0);
    CO_ASSERT_OK(co_await bed.upstream[0]->write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    EXPECT_THAT(co_await read(*user), HasSubstr("ok"));
    co_await bed.until_ended(1);
    co_await sleep_for(minutes(1));
    EXPECT_EQ(bed.servers.size(), 2u) << "the new one has all its ids";
  });
}

// frp's server without a group: the proxy is closed and registered again behind a round trip, and
// never refused, which would cost a second and more.
TEST(LinkKeeper, SwapsSessionsWhereOnlyOneMayServe) {
  run([](Fixture& bed) -> Task<> {
    bed.links = 1;
    co_await bed.serve();
    bed.keeper->replace();
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return bed.servers.size() == 2; }, "the second session"));
    const auto start = Clock::now();
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return bed.serves() && !bed.servers[1]->proxies.empty(); },
                                  "the proxies of the second session"));
    EXPECT_LE(Clock::now() - start, milliseconds(100));
    EXPECT_EQ(bed.servers[1]->proxies.size(), 1u);
    EXPECT_EQ(bed.gaps, 1);
    co_await bed.until_ended(1);
  });
}

TEST(LinkKeeper, AServerThatLeavesIsLeft) {
  run([](Fixture& bed) -> Task<> {
    co_await bed.serve();
    auto user = co_await bed.servers[0]->connect("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.upstream.size() == 1; },
                                             "a connection to the upstream"));
    bed.servers[0]->drain();
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          return bed.servers.size() == 2 && bed.owners.size() == 1 &&
                 bed.owners.contains(bed.servers[1].get());
        },
        "the host at the second session"));
    EXPECT_EQ(bed.gaps, 0);
    CO_ASSERT_OK(co_await bed.upstream[0]->write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    EXPECT_THAT(co_await read(*user), HasSubstr("ok"));
    co_await bed.until_ended(1);
  });
}

// Nor does it ask a server more than once a second that sends its clients away again and again.
// Whatever they draw. Of a thousand clients, a few drew waits so short that they then waited for ten
// seconds.
TEST(LinkKeeper, AC22_AServerThatWasAwayForAMomentHasEverybodyBackSoon) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    run(
        [seed](Fixture& bed) -> Task<> {
          co_await bed.serve();
          co_await sleep_for(seconds(2));
          bed.owners.clear();
          bed.is_down = true;
          co_await bed.servers.back()->stop();
          co_await sleep_for(milliseconds(2'500));
          bed.is_down = false;
          const auto back = Clock::now();
          co_await bed.serve();
          EXPECT_LE(Clock::now() - back, milliseconds(2'600)) << "seed " << seed;
        },
        seed);
  }
}

TEST(LinkKeeper, AServerThatSendsAwayIsNotAskedTooOften) {
  run([](Fixture& bed) -> Task<> {
    const auto start = Clock::now();
    for (std::size_t i = 1; i <= 20; ++i) {
      CO_ASSERT_TRUE(co_await test::eventually(
          [&] {
            return bed.servers.size() == i && bed.serves() &&
                   bed.owners.contains(bed.servers[i - 1].get());
          },
          "the host at the next session"));
      bed.servers[i - 1]->drain();
    }
    EXPECT_GE(Clock::now() - start, seconds(18));
    EXPECT_EQ(bed.gaps, 0);
  });
}

TEST(LinkKeeper, ARefusedReplacementLeavesTheLinkAlone) {
  run([](Fixture& bed) -> Task<> {
    co_await bed.serve();
    bed.proxy_error = "invalid token";
    bed.keeper->replace();
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return bed.servers.size() == 3; }, "the third session"));
    EXPECT_TRUE(bed.serves());
    EXPECT_FALSE(bed.servers[0]->has_ended);
    EXPECT_EQ(bed.servers[0]->closed_proxies, 0);
    const test::StatusPage status({bed.keeper->status()});
    EXPECT_EQ(status.state("link 1"), "degraded") << status;
    EXPECT_EQ(status.message("link 1"), "serving");
    EXPECT_EQ(status.text("link 1", "replacement_error"), "invalid token");
    bed.proxy_error.clear();
    co_await bed.until_ended(1);
    EXPECT_TRUE(bed.serves());
    EXPECT_EQ(bed.gaps, 0);
  });
}

TEST(LinkKeeper, AStopEndsTheSession) {
  run([](Fixture& bed) -> Task<> {
    co_await bed.serve();
    bed.keeper->stop();
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return bed.keeper->is_done(); }, "the end of the link"));
    EXPECT_EQ(bed.servers[0]->closed_proxies, 1);
    co_await sleep_for(minutes(5));
    EXPECT_EQ(bed.servers.size(), 1u);
  });
}

}  // namespace
}  // namespace gitops::tunnel_client
