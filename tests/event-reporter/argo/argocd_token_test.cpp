#include "event-reporter/argo/argocd_token.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/core/metrics.hpp"
#include "common/http/server.hpp"
#include "event-reporter/argo/gather.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

// An account as argocd-server keeps it: failures that are at most 300 s apart add up.
struct Account {
  unsigned failures = 0;
  unsigned most = 0;
  Clock::time_point last{};

  void fail() {
    if (Clock::now() - last > std::chrono::seconds(300)) failures = 0;
    last = Clock::now();
    most = std::max(most, ++failures);
  }
};

TEST(SessionCredential, AWrongPasswordLocksNobodyOut) {
  for (const std::uint32_t replicas : {0U, 1U, 2U, 4U}) {
    test::run_in_test_time([&]() -> Task<> {
      Account account;
      const auto log_in = [&account]() -> Task<Result<Secret>> {
        account.fail();
        co_return fail(ErrorCode::unauthenticated, "invalid username or password");
      };
      std::deque<Credential> credentials;
      TaskGroup tasks(co_await asio::this_coro::executor);
      for (std::uint32_t i = 0; i < std::max(replicas, 1U); ++i) {
        credentials.push_back(session_credential(log_in, replicas));
        credentials.back().start(tasks);
        co_await sleep_for(std::chrono::seconds(50));  // they do not start together
      }
      co_await sleep_for(std::chrono::hours(3));
      EXPECT_GT(account.most, 0U);
      EXPECT_LT(account.most, 5U) << replicas;
      tasks.cancel();
      co_await tasks.join();
    });
  }
}

// argocd-server with sessions, of which `good` is open. Reads of the Application "late" wait for
// their answer until they are released.
struct Sessions {
  explicit Sessions(const Executor& executor)
      : released(executor),
        server(executor, {}, [this](http::Exchange& exchange) { return serve(exchange); }),
        client(executor, resolver, {}),
        tasks(executor) {
    EXPECT_TRUE(server.listen());
    const http::Url here{.scheme = "http", .host = "127.0.0.1", .port = server.port()};
    k8s::ClusterConfig config;
    config.server = here;
    kube.emplace(executor, resolver, std::move(config), http::ProxySettings{}, "test");
    argocd.emplace(client, argo::ArgoCdClient::Options{.server = here},
                   [this] { return token.current(); });
    gatherer.emplace(executor, *kube, *argocd, token, "argocd", metrics);
    token.start(tasks);
  }
  Task<> serve(http::Exchange& exchange) {
    const std::string sent(exchange.request().headers.find("Authorization").value_or(""));
    if (exchange.path().contains("/late/")) {
      ++late;
      while (is_held) (void)co_await released.wait();
    }
    const bool is_open = sent == "Bearer " + good;
    (void)co_await exchange.reply(
        {.status = is_open ? 200 : 401,
         .headers = {{"Content-Type", "application/json"}},
         .body = is_open ? R"({"nodes":[]})" : R"({"code":16,"message":"token expired"})"});
  }
  Task<bool> read(std::string app) {
    const auto tree = co_await gatherer->tree({.ns = "argocd", .name = std::move(app)}, "default");
    co_return tree.has_value();
  }
  Task<> stop() {
    tasks.cancel();
    co_await tasks.join();
    client.close_idle();
    co_await server.stop(Clock::now());
  }

  std::string good = "canary-1";
  int logins = 0;
  int late = 0;
  bool is_held = true;
  Event released;
  http::Server server;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client client;
  TaskGroup tasks;
  Credential token = Credential::fetched(
      [this]() -> Task<Result<Secret>> {
        co_await sleep_for(std::chrono::milliseconds(10));
        co_return Secret("canary-" + std::to_string(++logins));
      },
      {.task = "login", .not_yet = "not logged in yet"});
  std::optional<k8s::Client> kube;
  std::optional<argo::ArgoCdClient> argocd;
  std::optional<Gatherer> gatherer;
};

// One of them is refused after the login for the other has ended.
TEST(SessionCredential, EveryReadAtTheEndOfASessionIsRepeatedInTheNextOne) {
  test::run_in_test_time([]() -> Task<> {
    Sessions sessions(co_await asio::this_coro::executor);
    EXPECT_TRUE(co_await test::eventually([&] { return sessions.logins == 1; }, "the login"));
    EXPECT_TRUE(co_await sessions.read("web"));
    bool is_read = false;
    TaskGroup reads(co_await asio::this_coro::executor);
    reads.spawn("late", [&]() -> Task<> { is_read = co_await sessions.read("late"); });
    EXPECT_TRUE(co_await test::eventually([&] { return sessions.late == 1; }, "the late read"));
    sessions.good = "canary-2";
    EXPECT_TRUE(co_await sessions.read("web"));
    EXPECT_EQ(sessions.logins, 2);
    co_await sleep_for(std::chrono::seconds(5));  // a refusal leads to another login now
    sessions.is_held = false;
    sessions.released.notify_all();
    co_await reads.join();
    EXPECT_TRUE(is_read);
    EXPECT_EQ(sessions.logins, 2);
    co_await sessions.stop();
  });
}

}  // namespace
}  // namespace gitops::reporter
