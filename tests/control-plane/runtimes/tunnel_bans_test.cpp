// A tunnel of a revoked token is banned at every tunnel server, however often that has to be repeated.
#include "control-plane/runtimes/tunnel_bans.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/http/server.hpp"
#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/runtimes/tunnel_plugin.hpp"
#include "support/wait.hpp"

namespace gitops::control_plane_server {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::SizeIs;

// The API of a tunnel server that notes what it is sent.
struct BanServer {
  explicit BanServer(const Executor& executor)
      : came(executor),
        server(executor, {}, [this](http::Exchange& exchange) { return serve(exchange); }) {
    must(server.listen());
  }
  Task<> serve(http::Exchange& exchange) {
    const auto& request = exchange.request();
    auto body = co_await exchange.read_body();
    sent.push_back(
        {.method = request.method,
         .target = request.target,
         .authorization = std::string(request.headers.find("Authorization").value_or("")),
         .body = body ? *body : std::string()});
    (void)co_await exchange.reply({.status = refusals-- > 0 ? 503 : 204});
    came.notify_all();
  }
  Task<> wait_for(std::size_t requests) {
    while (sent.size() < requests) co_await came.wait();
  }
  [[nodiscard]] http::Url url() const {
    return {.scheme = "http", .host = "127.0.0.1", .port = server.port()};
  }

  struct Sent {
    std::string method;
    std::string target;
    std::string authorization;
    std::string body;
  };
  std::vector<Sent> sent;
  int refusals = 0;
  Event came;
  http::Server server;
};

struct BansFixture {
  explicit BansFixture(AccountsFixture& on)
      : accounts(on), first(on.executor), second(on.executor) {}

  std::unique_ptr<TunnelBans> make() {
    auto bans = std::make_unique<TunnelBans>(
        accounts.executor, names, accounts.database, accounts.metrics,
        TunnelBans::Options{.servers = {first.url(), second.url()},
                            .token = Credential::fixed(Secret(std::string("api token"))),
                            .domain = "tunnels.example"});
    bans->start();
    return bans;
  }
  Task<> revoke() {
    auto added = co_await accounts.write([this](store::Connection& db) {
      return add_revocation(
          db, {.account = accounts.sample.acme.number, .subject = "key", .runtime = "prod"}, kNow);
    });
    must(std::move(added));
  }
  Task<std::size_t> count_pending() {
    auto pending =
        co_await accounts.write([](store::Connection& db) { return pending_tunnels(db); });
    co_return must(std::move(pending)).size();
  }
  Task<testing::AssertionResult> nothing_is_pending() {
    co_return co_await test::eventually(
        [this]() -> Task<bool> { co_return co_await count_pending() == 0; },
        "no pending ban in the database");
  }
  Task<> stop() {
    co_await first.server.stop(Clock::now());
    co_await second.server.stop(Clock::now());
  }

  AccountsFixture& accounts;
  net::Resolver names{accounts.metrics};
  BanServer first;
  BanServer second;
};

void with_bans(const std::function<Task<>(BansFixture&)>& body) {
  with_accounts([&](AccountsFixture& accounts) -> Task<> {
    BansFixture fixture(accounts);
    co_await body(fixture);
    co_await fixture.stop();
  });
}

TEST(TunnelBans, EveryServerBansTheHost) {
  with_bans([](BansFixture& fixture) -> Task<> {
    const auto bans = fixture.make();
    EXPECT_EQ(bans->status().state, StatusState::ok);
    co_await fixture.revoke();
    bans->wake();
    co_await fixture.first.wait_for(1);
    co_await fixture.second.wait_for(1);
    const auto& sent = fixture.first.sent.front();
    EXPECT_EQ(sent.method, "PUT");
    EXPECT_EQ(sent.target, "/v1/bans/" + tunnel_subdomain(fixture.accounts.sample.acme, "prod") +
                               ".tunnels.example");
    EXPECT_EQ(sent.authorization, "Bearer api token");
    EXPECT_TRUE(parse_rfc3339(Json::parse(sent.body)["until"].get<std::string>()));
    EXPECT_TRUE(co_await fixture.nothing_is_pending());
    co_await bans->stop();
    EXPECT_THAT(fixture.first.sent, SizeIs(1));
    EXPECT_THAT(fixture.second.sent, SizeIs(1));
  });
}

TEST(TunnelBans, ABanIsRepeatedUntilTheServerTakesIt) {
  with_bans([](BansFixture& fixture) -> Task<> {
    fixture.second.refusals = 100;
    co_await fixture.revoke();
    const auto bans = fixture.make();
    co_await fixture.second.wait_for(100);
    const auto status = bans->status();
    EXPECT_EQ(status.state, StatusState::degraded);
    EXPECT_THAT(status.details, SizeIs(1));
    EXPECT_EQ(status.details.front().message, "status 503");
    EXPECT_TRUE(fixture.accounts.counts("gitops_control_plane_tunnel_bans_pending 1"));
    co_await fixture.second.wait_for(101);
    EXPECT_TRUE(co_await fixture.nothing_is_pending());
    // The entry is removed from memory after the database has it.
    EXPECT_TRUE(co_await test::eventually([&] { return bans->status().state == StatusState::ok; },
                                          "an empty list of bans"));
    EXPECT_TRUE(fixture.accounts.counts("gitops_control_plane_tunnel_bans_pending 0"));
    EXPECT_TRUE(
        fixture.accounts.counts(R"(gitops_control_plane_tunnel_bans_total{result="failed"} 100)"));
    co_await bans->stop();
    EXPECT_THAT(fixture.first.sent, SizeIs(1));
  });
}

TEST(TunnelBans, ARestartGoesOnWithWhatIsLeft) {
  with_bans([](BansFixture& fixture) -> Task<> {
    fixture.first.refusals = 1'000'000;
    co_await fixture.revoke();
    auto bans = fixture.make();
    co_await fixture.first.wait_for(1);
    co_await bans->stop();
    bans.reset();
    EXPECT_EQ(co_await fixture.count_pending(), 1U);
    fixture.first.refusals = 0;
    bans = fixture.make();
    EXPECT_TRUE(co_await fixture.nothing_is_pending());
    co_await bans->stop();
  });
}

TEST(TunnelBans, ATunnelThatIsNoLongerPendingIsNotBannedForEver) {
  with_bans([](BansFixture& fixture) -> Task<> {
    fixture.second.refusals = 1'000'000;
    co_await fixture.revoke();
    const auto bans = fixture.make();
    co_await fixture.second.wait_for(3);
    EXPECT_EQ(bans->status().state, StatusState::degraded);
    // Another replica has reached both servers.
    auto finished = co_await fixture.accounts.write([](store::Connection& db) -> Result<void> {
      for (const auto& tunnel : must(pending_tunnels(db))) must(finish_tunnel(db, tunnel.id));
      return {};
    });
    must(std::move(finished));
    const auto is_quiet = [&] {
      const auto status = bans->status();
      return status.state == StatusState::ok && status.details.empty();
    };
    EXPECT_TRUE(co_await test::eventually(is_quiet, "an end of the ban"));
    EXPECT_TRUE(fixture.accounts.counts("gitops_control_plane_tunnel_bans_pending 0"));
    const auto sent = fixture.second.sent.size();
    co_await sleep_for(60s);
    EXPECT_THAT(fixture.second.sent, SizeIs(sent));
    co_await bans->stop();
  });
}

TEST(TunnelBans, ARevocationOfAnotherProcessIsFound) {
  with_bans([](BansFixture& fixture) -> Task<> {
    const auto bans = fixture.make();
    co_await sleep_for(1s);
    co_await fixture.revoke();
    co_await fixture.first.wait_for(1);
    co_await fixture.second.wait_for(1);
    co_await bans->stop();
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
