#include "event-reporter/argo/source_files.hpp"

#include <gmock/gmock.h>

#include "common/http/server.hpp"
#include "common/net/resolve.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "test_http/canned_server.hpp"

namespace gitops::reporter {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kFiles =
    R"({"files":[{"path":"a.yaml","text":"x","objects":[{"group":"","kind":"Service","namespace":"","name":"a"}]}]})";

// An app-proxy that answers after `delay`.
struct Fixture {
  explicit Fixture(const Executor& executor)
      : server(executor, {}, [this](http::Exchange& exchange) { return answer(exchange); }),
        http(executor, resolver, {}),
        tasks(executor) {
    EXPECT_TRUE(server.listen());
    SourceFiles::Options options;
    options.app_proxy.scheme = "http";
    options.app_proxy.host = "127.0.0.1";
    options.app_proxy.port = server.port();
    files.emplace(executor, http, runtime_token, options, metrics);
    files->start(tasks);
  }
  Task<> answer(http::Exchange& exchange) {
    ++requests;
    token = exchange.request().headers.find("Authorization").value_or("");
    target = exchange.request().target;
    (void)co_await exchange.read_body(1 << 20);
    if (delay.count() > 0) co_await sleep_for(delay);
    (void)co_await exchange.reply({.status = status, .headers = headers, .body = kFiles});
  }
  // What a report that begins now gets, and how long it waited.
  Task<std::shared_ptr<const GitFiles>> report(std::string request = "{}") {
    const auto begin = Clock::now();
    files->ask(request);
    auto found = co_await files->find(request, begin);
    waited = Clock::now() - begin;
    co_return found;
  }
  Task<> end() {
    tasks.cancel();
    co_await tasks.join();
    http.close_idle();
    co_await server.stop(Clock::now());
  }

  std::chrono::milliseconds delay{0};
  int status = 200;
  http::Headers headers = {};
  std::size_t requests = 0;
  std::string token, target;
  Clock::duration waited{};
  http::Server server;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client http;
  Credential runtime_token = Credential::fixed(Secret("canary-token"));
  TaskGroup tasks;
  std::optional<SourceFiles> files;
};

void with_fixture(const std::function<Task<>(Fixture&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor);
    co_await body(fixture);
    co_await fixture.end();
  });
}

TEST(SourceFiles, AnAnswerIsAskedForOnce) {
  with_fixture([](Fixture& fixture) -> Task<> {
    const auto files = co_await fixture.report();
    CO_ASSERT_TRUE(files != nullptr);
    EXPECT_EQ(files->find(ResourceId::parse("/v1/Service/prod/a"))->path, "a.yaml");
    EXPECT_EQ(fixture.target, "/api/source-files");
    EXPECT_EQ(fixture.token, "canary-token");
    EXPECT_EQ(co_await fixture.report(), files);
    EXPECT_EQ(fixture.requests, 1U);
    CO_ASSERT_TRUE(co_await fixture.report(R"({"path":"b"})") != nullptr);
    EXPECT_EQ(fixture.requests, 2U);
  });
}

TEST(SourceFiles, ASlowAnswerHoldsUpOneReportForAShortTime) {
  with_fixture([](Fixture& fixture) -> Task<> {
    fixture.delay = 10s;
    EXPECT_EQ(co_await fixture.report(), nullptr);
    EXPECT_GE(fixture.waited, 500ms);
    EXPECT_LT(fixture.waited, 600ms);
    EXPECT_EQ(co_await fixture.report(), nullptr);
    EXPECT_EQ(co_await fixture.report("another"), nullptr);
    EXPECT_EQ(fixture.waited, 0ms) << "nobody waits for some time";
    co_await sleep_for(11s);
    EXPECT_EQ(fixture.requests, 2U);
    CO_ASSERT_TRUE(co_await fixture.report() != nullptr) << "the late answer is used later";
    EXPECT_EQ(fixture.waited, 0ms);
  });
}

TEST(SourceFiles, AFailureHoldsUpNothing) {
  test::LogCapture log;
  with_fixture([](Fixture& fixture) -> Task<> {
    fixture.status = 502;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(co_await fixture.report(), nullptr);
    EXPECT_EQ(fixture.requests, 1U);
    EXPECT_EQ(fixture.waited, 0ms);
    fixture.status = 200;
    co_await sleep_for(31s);
    CO_ASSERT_TRUE(co_await fixture.report() != nullptr);
  });
  EXPECT_THAT(log.text(), HasSubstr("events go without them"));
  EXPECT_THAT(log.text(), Not(HasSubstr("canary")));
}

TEST(SourceFiles, WhatAppProxyCannotReadIsAskedForLater) {
  with_fixture([](Fixture& fixture) -> Task<> {
    fixture.status = 404;
    EXPECT_EQ(co_await fixture.report(), nullptr);
    fixture.status = 200;
    CO_ASSERT_TRUE(co_await fixture.report("another") != nullptr) << "others are not concerned";
    co_await sleep_for(60s);
    EXPECT_EQ(co_await fixture.report(), nullptr);
    EXPECT_EQ(fixture.requests, 2U);
    co_await sleep_for(300s);
    CO_ASSERT_TRUE(co_await fixture.report() != nullptr);
  });
}

// Something in between says nothing about the source, also with this status.
TEST(SourceFiles, APageIsAnOutageOfAppProxy) {
  for (const int status : {200, 404}) {
    with_fixture([status](Fixture& fixture) -> Task<> {
      fixture.status = status;
      fixture.headers = {{"Content-Type", "text/html"}};
      EXPECT_EQ(co_await fixture.report(), nullptr);
      fixture.status = 200;
      fixture.headers = {};
      co_await sleep_for(31s);
      CO_ASSERT_TRUE(co_await fixture.report() != nullptr) << status;
      EXPECT_EQ(fixture.requests, 2U);
    });
  }
}

TEST(SourceFiles, OnlySomeAreAskedForAtATime) {
  with_fixture([](Fixture& fixture) -> Task<> {
    fixture.delay = 1s;
    for (int i = 0; i < 50; ++i) fixture.files->ask(std::to_string(i));
    co_await sleep_for(100ms);
    EXPECT_EQ(fixture.requests, 4U);
    co_await sleep_for(5s);
    EXPECT_EQ(fixture.requests, 4U);
  });
}

TEST(SourceFiles, AnAppProxyThatIsAwayHoldsUpNothing) {
  with_fixture([](Fixture& fixture) -> Task<> {
    co_await fixture.server.stop(Clock::now());
    EXPECT_EQ(co_await fixture.report(), nullptr);
    EXPECT_LT(fixture.waited, 600ms);
    EXPECT_EQ(co_await fixture.report("another"), nullptr);
    EXPECT_EQ(fixture.waited, 0ms);
  });
}

}  // namespace
}  // namespace gitops::reporter
