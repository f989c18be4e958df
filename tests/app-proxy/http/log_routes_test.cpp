#include "app-proxy/http/log_routes.hpp"

#include <chrono>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include "app-proxy/resolvers/table.hpp"
#include "app-proxy/users_fixture.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string line(const std::string& content) {
  return R"({"result":{"content":")" + content + R"(","podName":"ui-1","last":false}})" + "\n";
}

// The route, behind it an argocd-server whose log tells one line, and another one and its end when it is released.
struct Fixture {
  explicit Fixture(UsersFixture& on)
      : released(on.executor),
        argocd_server(on.executor, {},
                      [this](http::Exchange& exchange) { return answer(exchange); }),
        users(on.executor, on.control_plane, on.runtime, on.metrics, {}),
        engine(graphql::Engine::make("type Query { open: Int }", guarded(rows, audit)).value()),
        gate(*engine, rows, users, on.metrics, {}),
        rules(on.executor, on.control_plane, [] { return std::string("a1"); }, on.metrics,
              {.refresh = 60s, .max_age = 900s}),
        server(on.executor, {}, [this](http::Exchange& exchange) -> Task<> {
          gate.add_common_headers(exchange);
          co_await routes->serve(exchange);
        }) {
    EXPECT_TRUE(argocd_server.listen());
    EXPECT_TRUE(server.listen());
    argocd.emplace(
        on.http,
        argo::ArgoCdClient::Options{
            .server = {.scheme = "http", .host = "127.0.0.1", .port = argocd_server.port()}},
        [] { return Secret("token"); });
    applications.emplace(*argocd, token, rules, "prod");
    streams.emplace(on.executor, &*applications, nullptr, nullptr, LogStreams::Options{});
    routes.emplace(gate, *streams, LogRoutes::Options{});
  }
  Task<> answer(http::Exchange& exchange) {
    if (!exchange.path().ends_with("/logs")) {
      (void)co_await exchange.reply({.status = 200, .body = R"({"metadata":{"name":"shop"}})"});
      co_return;
    }
    asked = exchange.query();
    (void)co_await exchange.start({.status = 200});
    (void)co_await exchange.write(line("one"));
    while (!is_released) co_await released.wait();
    (void)co_await exchange.write(line("two"));
    (void)co_await exchange.finish();
  }
  Task<> stop() {
    co_await server.stop(Clock::now());
    co_await streams->stop();
    co_await argocd_server.stop(Clock::now());
    co_await users.stop();
  }

  Event released;
  bool is_released = false;
  std::string asked;  // the query of the last log
  http::Server argocd_server;
  UserDirectory users;
  std::vector<FieldRow> rows{read("open", Permission::anyone, [] { return 1; })};
  Audit audit{"/dev/null"};
  std::unique_ptr<graphql::Engine> engine;
  RequestGate gate;
  Rules rules;
  Credential token = Credential::fixed(Secret("token"));
  std::optional<argo::ArgoCdClient> argocd;
  std::optional<ApplicationActions> applications;
  std::optional<LogStreams> streams;
  std::optional<LogRoutes> routes;
  http::Server server;
};

// Requests a log that goes on, as soon as the control plane has told the own account.
Task<Result<http::ClientExchange>> follow_log(UsersFixture& on, Fixture& fixture) {
  fixture.users.start();
  EXPECT_TRUE(co_await test::eventually([&] { return !fixture.users.own().account_id.empty(); },
                                        "the own account"));
  co_return co_await on.http.open(
      {.scheme = "http", .host = "127.0.0.1", .port = fixture.server.port()},
      {.method = "GET",
       .target = "/api/applications/logs?applicationName=shop&follow=true",
       .headers = {{"Authorization", "ann.1"}, {"Accept", "text/event-stream"}}},
      kNever);
}

// Routers in front close a connection on which nothing comes for 60 s.
TEST(LogRoutes, ASilentLogSendsACommentEach20Seconds) {
  with_users_fixture([](UsersFixture& on) -> Task<> {
    Fixture fixture(on);
    auto opened = co_await follow_log(on, fixture);
    CO_ASSERT_OK(opened);
    opened->set_deadline(kNever);
    const auto head = co_await opened->read_head();
    CO_ASSERT_OK(head);
    EXPECT_EQ(head->status, 200);
    const auto next = [&]() -> Task<std::string> {
      auto piece = co_await opened->read_some();
      co_return piece ? *piece : piece.error().message;
    };
    EXPECT_THAT(co_await next(), HasSubstr(R"("content":"one")"));
    auto last = Clock::now();
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(co_await next(), ":\n\n");
      EXPECT_GE(Clock::now() - last, 20s);
      EXPECT_LT(Clock::now() - last, 21s);
      last = Clock::now();
    }
    fixture.is_released = true;
    fixture.released.notify_all();
    std::string rest;
    for (int i = 0; i < 10 && !rest.contains("event: end"); ++i) rest += co_await next();
    EXPECT_THAT(rest, testing::StartsWith("event: log\n"));
    EXPECT_THAT(rest, HasSubstr(R"("content":"two")"));
    on.http.close_idle();
    co_await fixture.stop();
  });
}

// Longer than a known user is let in without the control plane.
TEST(LogRoutes, ALogThatEndsInAnOutageDoesNotBlameTheCredential) {
  with_users_fixture([](UsersFixture& on) -> Task<> {
    Fixture fixture(on);
    auto opened = co_await follow_log(on, fixture);
    CO_ASSERT_OK(opened);
    opened->set_deadline(kNever);
    CO_ASSERT_OK(co_await opened->read_head());
    on.platform.fail_next(100'000, 503, 0s, "graphql");
    co_await sleep_for(400s);
    fixture.is_released = true;
    fixture.released.notify_all();
    std::string all;
    while (!all.contains("event: end")) {
      const auto piece = co_await opened->read_some();
      CO_ASSERT_OK(piece);
      CO_ASSERT_TRUE(!piece->empty()) << all;
      all += *piece;
    }
    EXPECT_THAT(all, HasSubstr("event: trouble\ndata: the control plane cannot be asked"));
    EXPECT_THAT(all, testing::Not(HasSubstr("Unauthorized")));
    on.http.close_idle();
    co_await fixture.stop();
  });
}

TEST(LogRoutes, TheContainerBeforeARestartIsAskedFor) {
  with_users_fixture([](UsersFixture& on) -> Task<> {
    Fixture fixture(on);
    fixture.users.start();
    fixture.is_released = true;
    EXPECT_TRUE(co_await test::eventually([&] { return !fixture.users.own().account_id.empty(); },
                                          "the own account"));
    const http::Url here{.scheme = "http", .host = "127.0.0.1", .port = fixture.server.port()};
    const auto get = [&](std::string query) {
      return on.http.send(
          here,
          {.method = "GET",
           .target = "/api/applications/logs?" + query,
           .headers = {{"Authorization", "ann.1"}, {"Accept", "text/event-stream"}}},
          deadline_after(5s));
    };
    CO_ASSERT_OK(co_await get("applicationName=shop&podName=ui-1&previous=true"));
    EXPECT_THAT(fixture.asked, HasSubstr("previous=true"));
    CO_ASSERT_OK(co_await get("applicationName=shop&podName=ui-1"));
    EXPECT_THAT(fixture.asked, testing::Not(HasSubstr("previous")));
    // Events are those of one object of an application or a workflow.
    for (const auto* query : {"applicationName=shop&events=true", "componentName=x&events=true",
                              "applicationName=shop&workflowName=x"}) {
      const auto refused = co_await get(query);
      CO_ASSERT_OK(refused);
      EXPECT_EQ(refused->status, 400) << query;
    }
    on.http.close_idle();
    co_await fixture.stop();
  });
}

TEST(LogRoutes, ANumberThatIsNoneIsRefused) {
  with_users_fixture([](UsersFixture& on) -> Task<> {
    Fixture fixture(on);
    fixture.users.start();
    fixture.is_released = true;
    EXPECT_TRUE(co_await test::eventually([&] { return !fixture.users.own().account_id.empty(); },
                                          "the own account"));
    const http::Url here{.scheme = "http", .host = "127.0.0.1", .port = fixture.server.port()};
    for (const auto& [query, status] : {std::pair("tailLines=many", 400),
                                        {"sinceSeconds=1h", 400},
                                        {"tailLines=&sinceSeconds=60", 200}}) {
      const auto answer = co_await on.http.send(
          here,
          {.method = "GET",
           .target = std::string("/api/applications/logs?applicationName=shop&") + query,
           .headers = {{"Authorization", "ann.1"}, {"Accept", "text/event-stream"}}},
          deadline_after(5s));
      CO_ASSERT_OK(answer);
      EXPECT_EQ(answer->status, status) << query;
    }
    on.http.close_idle();
    co_await fixture.stop();
  });
}

TEST(LogRoutes, AnEventHasItsReason) {
  EXPECT_EQ(server_sent({.kind = LogEvent::Kind::line,
                         .line = {.pod = "ui-1",
                                  .timestamp = "2026-03-04T09:12:00Z",
                                  .content = "no such image",
                                  .reason = "Failed",
                                  .type = "Warning"}}),
            "event: log\ndata: {\"podName\":\"ui-1\",\"timestamp\":\"2026-03-04T09:12:00Z\","
            "\"content\":\"no such image\",\"reason\":\"Failed\",\"type\":\"Warning\"}\n\n");
}

// The public command line sends no credential and takes the name of a file from the answer,
// whatever its status: it fails with a sentence, which is the name that it cannot open.
TEST(LogRoutes, ADownloadWithoutACredentialIsAnsweredByASentence) {
  with_users_fixture([](UsersFixture& on) -> Task<> {
    Fixture fixture(on);
    fixture.users.start();
    const http::Url here{.scheme = "http", .host = "127.0.0.1", .port = fixture.server.port()};
    const auto answer = co_await on.http.send(
        here, {.method = "GET", .target = "/api/applications/logs"}, deadline_after(5s));
    CO_ASSERT_OK(answer);
    EXPECT_EQ(answer->status, 401);
    EXPECT_EQ(answer->body, R"({"error":"Unauthorized: Invalid token."})");
    const auto name = answer->headers.find("Content-Disposition").value_or("");
    EXPECT_THAT(std::string(name), testing::MatchesRegex("attachment; filename=\"[^\"\\\\]*\""));
    // In a folder that nobody has: nothing is written, and nothing overwritten.
    EXPECT_THAT(std::string(name), HasSubstr("\"nothing was downloaded/"));
    EXPECT_THAT(std::string(name), HasSubstr("need a credential"));
    EXPECT_THAT(std::string(name), testing::Not(HasSubstr("..")));
    on.http.close_idle();
    co_await fixture.stop();
  });
}

}  // namespace
}  // namespace gitops::app_proxy
