#include "common/control_plane/graphql.hpp"

#include <gmock/gmock.h>

#include "support/run_coro.hpp"
#include "test_http/canned_server.hpp"

namespace gitops::control_plane {
namespace {

using namespace std::chrono_literals;
using test::CannedServer;
using test::run_in_test_time;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A control plane with these answers and a client of it.
struct Bench {
  Bench(const Executor& executor, std::vector<http::Response> answers)
      : server(executor, std::move(answers)),
        resolver(metrics),
        http(executor, resolver, {}),
        client(http, server.url(), [this] { return token; }) {}

  Task<Result<std::string>> account() { return client.account(deadline_after(3s)); }

  CannedServer server;
  Metrics metrics;
  net::Resolver resolver;
  http::Client http;
  Secret token{"raw-token"};
  GraphqlClient client;
};

void with_bench(std::vector<http::Response> answers, const std::function<Task<>(Bench&)>& body) {
  run_in_test_time([&]() -> Task<> {
    Bench bench(co_await asio::this_coro::executor, std::move(answers));
    co_await body(bench);
    co_await bench.server.stop();
  });
}

http::Response answer(int status, std::string body) {
  return {.status = status, .headers = {}, .body = std::move(body)};
}

TEST(GraphqlClient, TellsTheAccountOfTheToken) {
  with_bench({answer(200, R"({"data":{"me":{"activeAccount":{"name":"acme"}}}})"),
              answer(200, R"({"data":{"me":{"activeAccount":null}}})")},
             [](Bench& bench) -> Task<> {
               const auto account = co_await bench.account();
               CO_ASSERT_OK(account);
               EXPECT_EQ(*account, "acme");
               const auto& seen = bench.server.seen().back();
               EXPECT_EQ(seen.target, "/2.0/api/graphql");
               EXPECT_EQ(seen.headers.find("Authorization"), "raw-token");
               EXPECT_THAT(seen.body, HasSubstr("query me{me{"));
               const auto unnamed = co_await bench.account();
               CO_ASSERT_OK(unnamed);
               EXPECT_EQ(*unnamed, "");
             });
}

TEST(GraphqlClient, WithoutATokenItSendsNone) {
  with_bench({answer(401, "{}")}, [](Bench& bench) -> Task<> {
    bench.token = Secret();
    EXPECT_EQ((co_await bench.account()).error().code, ErrorCode::unauthenticated);
    EXPECT_FALSE(bench.server.seen().back().headers.find("Authorization"));
  });
}

TEST(GraphqlClient, RefusalsAreErrorsAndDoNotShowTheToken) {
  with_bench({answer(401, R"({"message":"raw-token is wrong"})"), answer(503, "")},
             [](Bench& bench) -> Task<> {
               const auto refused = co_await bench.account();
               CO_ASSERT_TRUE(!refused);
               EXPECT_EQ(refused.error().code, ErrorCode::unauthenticated);
               EXPECT_EQ(refused.error().http_status, 401);
               EXPECT_THAT(refused.error().message,
                           AllOf(HasSubstr("401 Unauthorized"), Not(HasSubstr("raw-token"))));
               EXPECT_EQ((co_await bench.account()).error().code, ErrorCode::unavailable);
             });
}

TEST(GraphqlClient, AnswersThatNameNobodyAreErrors) {
  with_bench(
      {answer(200, R"({"errors":[{"message":"no such field"}]})"), answer(200, R"({"errors":[1]})"),
       answer(200, R"({"data":{"me":null}})"), answer(200, "[]"), answer(200, "<html>")},
      [](Bench& bench) -> Task<> {
        const auto refused = co_await bench.account();
        CO_ASSERT_TRUE(!refused);
        EXPECT_EQ(refused.error().code, ErrorCode::invalid_data);
        EXPECT_THAT(refused.error().message, HasSubstr("no such field"));
        EXPECT_EQ((co_await bench.account()).error().code, ErrorCode::invalid_data);
        for (int i = 0; i < 3; ++i) {
          EXPECT_EQ((co_await bench.account()).error().code, ErrorCode::protocol);
        }
      });
}

}  // namespace
}  // namespace gitops::control_plane
