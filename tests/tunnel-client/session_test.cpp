#include "tunnel-client/session.hpp"

#include <array>
#include <optional>
#include <stdexcept>

#include <gmock/gmock.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "common/net/memory_channel.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"
#include "tunnel-client/scripted_server.hpp"

namespace gitops::tunnel_client {
namespace {

using net::Channel;
using std::chrono::seconds;
using testing::HasSubstr;

// A session, its server, and the upstream that it connects to.
struct Fixture {
  explicit Fixture(const Executor& executor)
      : changed(executor), tasks(executor), traffic(metrics, {{"link", "1"}}) {
    path.emplace(executor);
    server.emplace(executor, std::move(path->far));
    Session::Options options;
    options.control.login = {.version = "1.0.0", .pool_count = 1};
    options.control.proxies = {{.proxy_name = "a",
                                .proxy_type = "http",
                                .metas = {{"Authorization", Secret("token")}},
                                .subdomain = "a",
                                .locations = {"/"}}};
    session.emplace(
        executor, std::move(path->near), options,
        [this, executor](const std::string& proxy,
                         Deadline) -> Task<Result<std::unique_ptr<Channel>>> {
          EXPECT_EQ(proxy, "a");
          if (upstream_is_down) co_return fail(ErrorCode::unavailable, "connection refused");
          auto [ours, theirs] = net::MemoryChannel::pair(executor);
          upstream.push_back(std::move(theirs));
          changed.notify_all();
          co_return std::move(ours);
        },
        traffic, changed);
    tasks.spawn("session", [this]() -> Task<> {
      ending = co_await session->run();
      changed.notify_all();
    });
  }

  Task<> reach(Session::State state) {
    CO_ASSERT_TRUE(co_await test::eventually([this, state] { return session->state() == state; },
                                             "the state of the session"));
  }
  Task<Channel*> next_upstream() {
    const auto before = upstream.size();
    EXPECT_TRUE(co_await test::eventually([&] { return upstream.size() > before; },
                                          "a connection to the upstream"));
    if (upstream.size() == before) throw std::runtime_error("no connection to the upstream");
    co_return upstream.back().get();
  }

  Metrics metrics;
  Event changed;
  TaskGroup tasks;
  Traffic traffic;
  std::optional<Path> path;
  std::optional<ScriptedServer> server;
  std::vector<std::unique_ptr<Channel>> upstream;
  bool upstream_is_down = false;
  std::optional<Session> session;
  std::optional<Error> ending;
};

void run(const std::function<Task<>(Fixture&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    Fixture bed(co_await asio::this_coro::executor);
    co_await body(bed);
    co_await bed.server->stop();
    co_await bed.tasks.join();
    co_await bed.path->cut();
    EXPECT_TRUE(bed.ending);
  });
}

Task<std::string> read(Channel& channel) {
  std::array<char, 4096> room;
  const auto size = co_await channel.read_some(room);
  if (!size) co_return "(" + size.error().message + ")";
  co_return *size == 0 ? "(end)" : std::string(room.data(), *size);
}

TEST(TunnelSession, RegistersItsProxyWithTheToken) {
  run([](Fixture& bed) -> Task<> {
    EXPECT_EQ(bed.session->state(), Session::State::logging_in);
    co_await bed.reach(Session::State::serving);
    EXPECT_EQ(bed.session->run_id(), "run-1");
    EXPECT_EQ(bed.session->control().server_version(), "0.44.0");
    CO_ASSERT_EQ(bed.server->proxies.size(), 1u);
    EXPECT_EQ(bed.server->proxies[0].metas.at("Authorization").reveal(), "token");
  });
}

TEST(TunnelSession, LogsTheBeginOfItsRunIdOnly) {
  test::LogCapture log;
  run([](Fixture& bed) -> Task<> {
    bed.server->run_id = "01234567-canary";
    co_await bed.reach(Session::State::serving);
    EXPECT_EQ(bed.session->run_id(), "01234567-canary");
  });
  EXPECT_EQ(log.count("01234567"), 1U);
  EXPECT_EQ(log.count("canary"), 0U);
}

TEST(TunnelSession, RelaysARequestToTheUpstream) {
  run([](Fixture& bed) -> Task<> {
    // The request comes in the same bytes as the message before it.
    auto user = co_await bed.server->connect("GET / HTTP/1.1\r\n\r\n");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !bed.upstream.empty(); },
                                             "a connection to the upstream"));
    auto& upstream = *bed.upstream.front();
    EXPECT_EQ(co_await read(upstream), "GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(bed.session->carrying(), 1u);
    CO_ASSERT_OK(co_await upstream.write("HTTP/1.1 204 No Content\r\n\r\n"));
    EXPECT_EQ(co_await read(*user), "HTTP/1.1 204 No Content\r\n\r\n");
    user->shutdown_send();
    EXPECT_EQ(co_await read(upstream), "(end)");
    upstream.shutdown_send();
    EXPECT_EQ(co_await read(*user), "(end)");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.session->carrying() == 0; },
                                             "the end of the request"));
    EXPECT_EQ(bed.traffic.connections.Value(), 1);
    EXPECT_EQ(bed.traffic.open_connections.Value(), 0);
    EXPECT_EQ(bed.traffic.bytes_from_server.Value(), 18);
    EXPECT_EQ(bed.traffic.bytes_to_server.Value(), 27);
  });
}

// yamux has 256 streams without an ACK at a time.
TEST(TunnelSession, ABurstOfRequestsForWorkIsServedToTheLast) {
  run([](Fixture& bed) -> Task<> {
    co_await bed.reach(Session::State::serving);
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.server->pool.size() == 1; },
                                             "a work connection"));
    for (int i = 0; i < 700; ++i) bed.server->control->want_work();
    co_await bed.server->flush();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.server->pool.size() == 701; },
                                             "701 work connections"));
  });
}

// frp knows no half-close. Without this an abandoned download would hold its connection to the
// upstream until the idle timeout, for nobody reads what fills the window.
TEST(TunnelSession, AUserWhoLeavesFreesTheUpstream) {
  run([](Fixture& bed) -> Task<> {
    auto user = co_await bed.server->connect("GET /large HTTP/1.1\r\n\r\n");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !bed.upstream.empty(); },
                                             "a connection to the upstream"));
    auto& upstream = *bed.upstream.front();
    EXPECT_EQ(co_await read(upstream), "GET /large HTTP/1.1\r\n\r\n");
    user->shutdown_send();
    upstream.set_write_deadline(deadline_after(seconds(60)));
    const std::string block(64 * 1024, 'x');
    Result<void> written;
    while (written) written = co_await upstream.write(block);
    EXPECT_EQ(written.error().code, ErrorCode::unavailable);
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.session->carrying() == 0; },
                                             "the end of the request"));
  });
}

TEST(TunnelSession, CarriesManyConnectionsAtATime) {
  run([](Fixture& bed) -> Task<> {
    std::vector<std::shared_ptr<Channel>> users;
    for (std::size_t i = 0; i < 50; ++i) {
      users.push_back(co_await bed.server->connect("request " + std::to_string(i)));
      CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.upstream.size() == i + 1; },
                                               "another connection to the upstream"));
    }
    EXPECT_EQ(bed.session->carrying(), 50u);
    for (std::size_t i = 50; i-- > 0;) {
      EXPECT_EQ(co_await read(*bed.upstream[i]), "request " + std::to_string(i));
      CO_ASSERT_OK(co_await bed.upstream[i]->write("answer " + std::to_string(i)));
      EXPECT_EQ(co_await read(*users[i]), "answer " + std::to_string(i));
    }
  });
}

TEST(TunnelSession, ClosesTheConnectionWhenTheUpstreamIsDown) {
  run([](Fixture& bed) -> Task<> {
    bed.upstream_is_down = true;
    auto user = co_await bed.server->connect("x");
    EXPECT_THAT(co_await read(*user), HasSubstr("("));
    EXPECT_EQ(bed.traffic.failed_connections.Value(), 1);
    EXPECT_EQ(bed.session->state(), Session::State::serving);
  });
}

TEST(TunnelSession, EndsWithTheServersReasonWhenItMayNotLogIn) {
  run([](Fixture& bed) -> Task<> {
    bed.server->login_error = "token in login doesn't match";
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.ending.has_value(); },
                                             "the end of the session"));
    EXPECT_EQ(bed.ending->code, ErrorCode::forbidden);
    EXPECT_THAT(bed.ending->message, HasSubstr("token in login doesn't match"));
  });
}

TEST(TunnelSession, SaysWhyTheProxyIsRefusedAndAsksAgain) {
  run([](Fixture& bed) -> Task<> {
    bed.server->proxy_error = "invalid token";
    co_await bed.reach(Session::State::refused);
    EXPECT_EQ(bed.session->refusal(), "invalid token");
    bed.server->proxy_error.clear();
    co_await bed.reach(Session::State::serving);
    EXPECT_EQ(bed.session->refusal(), "");
  });
}

TEST(TunnelSession, AC20_EndsWhenTheServerDoesNotAnswerTheLogin) {
  run([](Fixture& bed) -> Task<> {
    bed.server->is_silent = true;
    const auto start = Clock::now();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.ending.has_value(); },
                                             "the end of the session"));
    EXPECT_EQ(bed.ending->code, ErrorCode::timeout);
    EXPECT_LE(Clock::now() - start, seconds(11));
  });
}

TEST(TunnelSession, EndsWithTheControlStream) {
  run([](Fixture& bed) -> Task<> {
    co_await bed.reach(Session::State::serving);
    auto user = co_await bed.server->connect("x");
    bed.server->control_stream->shutdown_send();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.ending.has_value(); },
                                             "the end of the session"));
    EXPECT_EQ(bed.ending->message, "the server ended the session");
    EXPECT_EQ(bed.session->carrying(), 0u);
    EXPECT_EQ(bed.traffic.open_connections.Value(), 0);
  });
}

// frp's server keeps an idle connection for a minute, for the next request.
TEST(TunnelSession, AStopEndsConnectionsWithoutARequest) {
  run([](Fixture& bed) -> Task<> {
    co_await bed.reach(Session::State::serving);
    auto idle = co_await bed.server->connect("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.upstream.size() == 1; },
                                             "a connection to the upstream"));
    CO_ASSERT_OK(co_await bed.upstream[0]->write("HTTP/1.1 204 No Content\r\n\r\n"));
    EXPECT_EQ(co_await read(*idle), "HTTP/1.1 204 No Content\r\n\r\n");
    auto busy = co_await bed.server->connect("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.upstream.size() == 2; },
                                             "a second connection to the upstream"));
    EXPECT_EQ(bed.traffic.requests.Value(), 2);

    const auto start = Clock::now();
    bed.session->stop();
    EXPECT_EQ(co_await read(*idle), "(end)");
    EXPECT_LE(Clock::now() - start, seconds(2));
    EXPECT_EQ(bed.session->carrying(), 1u);

    co_await sleep_for(seconds(60));
    CO_ASSERT_OK(co_await bed.upstream[1]->write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    EXPECT_THAT(co_await read(*busy), HasSubstr("ok"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.ending.has_value(); },
                                             "the end of the session"));
    EXPECT_EQ(bed.ending->message, "everybody was served to the end");
  });
}

// 14 s for a path that swallows everything, with a user who waits or without.
TEST(TunnelSession, AC20_NoticesAServerThatVanished) {
  for (const bool busy : {false, true}) {
    run([busy](Fixture& bed) -> Task<> {
      co_await bed.reach(Session::State::serving);
      std::shared_ptr<Channel> user;
      if (busy) {
        user = co_await bed.server->connect("x");
        CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.session->carrying() == 1; },
                                                 "a request in flight"));
      }
      co_await sleep_for(seconds(100));
      EXPECT_FALSE(bed.ending) << "the server answers";
      const auto start = Clock::now();
      co_await bed.path->cut();
      if (busy) {
        const std::string block(60'000, 'x');
        (void)co_await bed.upstream.front()->write(block);
      }
      CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.ending.has_value(); },
                                               "the end of the session"));
      EXPECT_EQ(bed.ending->code, ErrorCode::timeout);
      EXPECT_LE(Clock::now() - start, seconds(15));
    });
  }
}

TEST(TunnelSession, StopsWithoutHarmToThoseWhoAreThere) {
  run([](Fixture& bed) -> Task<> {
    co_await bed.reach(Session::State::serving);
    auto user = co_await bed.server->connect("x");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.session->carrying() == 1; },
                                             "a request in flight"));
    bed.session->stop();
    EXPECT_EQ(bed.session->state(), Session::State::stopping);
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.server->closed_proxies == 1; },
                                             "a closed proxy"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !bed.upstream.empty(); },
                                             "a connection to the upstream"));
    CO_ASSERT_OK(co_await bed.upstream.front()->write("answer"));
    EXPECT_EQ(co_await read(*user), "answer");
  });
}

}  // namespace
}  // namespace gitops::tunnel_client
