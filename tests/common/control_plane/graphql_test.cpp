#include "common/control_plane/graphql.hpp"

#include <gmock/gmock.h>

#include "support/run_coro.hpp"
#include "test_http/canned_server.hpp"
#include "test_http/responses.hpp"

namespace gitops::control_plane {
namespace {

using namespace std::chrono_literals;
using test::CannedServer;
using test::make_response;
using test::run_in_test_time;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A control plane with these answers and a client of it.
struct Fixture {
  Fixture(const Executor& executor, std::vector<http::Response> answers)
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

void with_fixture(std::vector<http::Response> answers,
                  const std::function<Task<>(Fixture&)>& body) {
  run_in_test_time([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor, std::move(answers));
    co_await body(fixture);
    co_await fixture.server.stop();
  });
}

TEST(GraphqlClient, TellsTheAccountOfTheToken) {
  with_fixture({make_response(200, R"({"data":{"me":{"activeAccount":{"name":"acme"}}}})"),
                make_response(200, R"({"data":{"me":{"activeAccount":null}}})")},
               [](Fixture& fixture) -> Task<> {
                 const auto account = co_await fixture.account();
                 CO_ASSERT_OK(account);
                 EXPECT_EQ(*account, "acme");
                 const auto& seen = fixture.server.seen().back();
                 EXPECT_EQ(seen.target, "/2.0/api/graphql");
                 EXPECT_EQ(seen.headers.find("Authorization"), "raw-token");
                 EXPECT_THAT(seen.body, HasSubstr("query me{me{"));
                 const auto unnamed = co_await fixture.account();
                 CO_ASSERT_OK(unnamed);
                 EXPECT_EQ(*unnamed, "");
               });
}

TEST(GraphqlClient, WithoutATokenItSendsNone) {
  with_fixture({make_response(401, "{}")}, [](Fixture& fixture) -> Task<> {
    fixture.token = Secret();
    EXPECT_EQ((co_await fixture.account()).error().code, ErrorCode::unauthenticated);
    EXPECT_FALSE(fixture.server.seen().back().headers.find("Authorization"));
  });
}

TEST(GraphqlClient, RefusalsAreErrorsAndDoNotShowTheToken) {
  with_fixture({make_response(401, R"({"message":"raw-token is wrong"})"), make_response(503, "")},
               [](Fixture& fixture) -> Task<> {
                 const auto refused = co_await fixture.account();
                 CO_ASSERT_TRUE(!refused);
                 EXPECT_EQ(refused.error().code, ErrorCode::unauthenticated);
                 EXPECT_EQ(refused.error().http_status, 401);
                 EXPECT_THAT(refused.error().message,
                             AllOf(HasSubstr("401 Unauthorized"), Not(HasSubstr("raw-token"))));
                 EXPECT_EQ((co_await fixture.account()).error().code, ErrorCode::unavailable);
               });
}

TEST(GraphqlClient, AnswersThatNameNobodyAreErrors) {
  with_fixture(
      {make_response(200, R"({"errors":[{"message":"no such field"}]})"),
       make_response(200, R"({"errors":[1]})"), make_response(200, R"({"data":{"me":null}})"),
       make_response(200, "[]"), make_response(200, "<html>")},
      [](Fixture& fixture) -> Task<> {
        const auto refused = co_await fixture.account();
        CO_ASSERT_TRUE(!refused);
        EXPECT_EQ(refused.error().code, ErrorCode::invalid_data);
        EXPECT_THAT(refused.error().message, HasSubstr("no such field"));
        EXPECT_EQ((co_await fixture.account()).error().code, ErrorCode::invalid_data);
        for (int i = 0; i < 3; ++i) {
          EXPECT_EQ((co_await fixture.account()).error().code, ErrorCode::protocol);
        }
      });
}

TEST(GraphqlClient, TellsWhoSentACredential) {
  with_fixture(
      {make_response(200, R"({"data":{"me":{"id":"u1","name":"Ann","email":null,"activeAccount":
                       {"id":"a1","name":"acme","admins":["u0","u1"],"gitProvider":"GITHUB"}}}})"),
       make_response(200, R"({"data":{"me":{"runtimeName":"prod","activeAccount":
                       {"id":"a1","admins":[""]}}}})"),
       make_response(200,
                     R"({"data":{"me":{"id":"u1","activeAccount":{"id":"a1","admins":"u1"}}}})")},
      [](Fixture& fixture) -> Task<> {
        const auto ann = co_await fixture.client.me(
            {.header = "x-access-token", .value = Secret("hers")}, deadline_after(3s));
        CO_ASSERT_OK(ann);
        EXPECT_EQ(ann->user_id, "u1");
        EXPECT_EQ(ann->email, "");
        EXPECT_EQ(ann->account_id, "a1");
        EXPECT_EQ(ann->git_provider, "GITHUB");
        EXPECT_TRUE(ann->is_account_admin);
        const auto& request = fixture.server.seen().at(0);
        EXPECT_EQ(request.headers.find("x-access-token"), "hers");
        EXPECT_EQ(request.headers.find("Authorization"), std::nullopt);
        const auto runtime = co_await fixture.client.own_identity(deadline_after(3s));
        CO_ASSERT_OK(runtime);
        EXPECT_EQ(runtime->runtime_name, "prod");
        EXPECT_FALSE(runtime->is_account_admin);
        const auto odd = co_await fixture.client.own_identity(deadline_after(3s));
        CO_ASSERT_OK(odd);
        EXPECT_FALSE(odd->is_account_admin);
      });
}

TEST(GraphqlClient, RefusedCredentialsAreToldFromFailures) {
  with_fixture(
      {make_response(401, "{}"),
       make_response(200, R"({"errors":[{"message":"Unauthorized: x"}]})"),
       make_response(200,
                     R"({"errors":[{"message":"no","extensions":{"code":"UNAUTHENTICATED"}}]})"),
       make_response(200, R"({"errors":[{"message":"no","extensions":{"statusCode":401}}]})"),
       make_response(500, "{}"), make_response(200, R"({"data":{"me":{"id":"u1"}}})"),
       make_response(200, R"({"data":{"me":{"activeAccount":{"id":"a1"}}}})")},
      [](Fixture& fixture) -> Task<> {
        using enum ErrorCode;
        for (const ErrorCode code : {unauthenticated, unauthenticated, unauthenticated,
                                     unauthenticated, unavailable, protocol, protocol}) {
          const auto me = co_await fixture.client.own_identity(deadline_after(3s));
          CO_ASSERT_TRUE(!me);
          EXPECT_EQ(me.error().code, code);
        }
      });
}

TEST(GraphqlClient, APageIsNoVerdictOnACredential) {
  const http::Headers html{{"Content-Type", "text/html; charset=utf-8"}};
  const std::string body = "<!DOCTYPE html><html>blocked</html>";
  with_fixture(
      {make_response(401, body, html), make_response(403, body, html), make_response(401, "", html),
       make_response(429, body, html), make_response(401, "Unauthorized", html)},
      [](Fixture& fixture) -> Task<> {
        for (int i = 0; i < 2; ++i) {
          const auto me = co_await fixture.client.own_identity(deadline_after(3s));
          CO_ASSERT_TRUE(!me);
          EXPECT_EQ(me.error().code, ErrorCode::unavailable);
          EXPECT_THAT(me.error().message, HasSubstr("with text/html instead of JSON"));
        }
        for (const ErrorCode code : {ErrorCode::unauthenticated, ErrorCode::too_many_requests,
                                     ErrorCode::unauthenticated}) {
          EXPECT_EQ((co_await fixture.client.own_identity(deadline_after(3s))).error().code, code);
        }
      });
}

// A gateway in between may have JSON of its own.
TEST(GraphqlClient, AReportIsTakenOnlyWhenTheAnswerSaysSo) {
  with_fixture({make_response(200, R"({"status":"ok"})"), make_response(200, R"({"data":null})"),
                make_response(200, R"({"data":{"updateRuntimeClusters":true}})")},
               [](Fixture& fixture) -> Task<> {
                 for (const bool is_taken : {false, false, true}) {
                   const ClusterState edge{
                       .name = "edge", .server = "https://edge.test", .status = "Successful"};
                   const auto reported =
                       co_await fixture.client.report_clusters("prod", {edge}, deadline_after(3s));
                   EXPECT_EQ(reported.has_value(), is_taken);
                   if (!reported) EXPECT_EQ(reported.error().code, ErrorCode::protocol);
                 }
               });
}

TEST(GraphqlClient, ReadsGitSourcesByPagesAndReportsPermissions) {
  const auto page = [](const char* name, const char* info) {
    return make_response(
        200, std::string(R"({"data":{"response":{"edges":[{"node":{"metadata":{"name":")") + name +
                 R"(","account":"a","namespace":"ns"},"self":{"repoURL":"https://h/o/r"},)"
                 R"("permissions":[{"userId":"u","read":true,"write":null},7]}}],)"
                 R"("pageInfo":)" +
                 info + "}}}");
  };
  with_fixture(
      {page("one", R"({"hasNextPage":true,"endCursor":"c1"})"),
       page("two", R"({"hasNextPage":true,"endCursor":""})"),
       make_response(200, R"({"data":{"updateGitSourcePermissions":null}})"),
       make_response(200, R"({"data":{"response":null}})"),
       make_response(200, R"({"errors":[{"message":"Cannot query field \"gitSources\""}]})")},
      [](Fixture& fixture) -> Task<> {
        const auto sources = co_await fixture.client.git_sources("prod", deadline_after(3s));
        CO_ASSERT_OK(sources);
        CO_ASSERT_EQ(sources->size(), 2U);
        EXPECT_EQ(sources->at(0).name, "one");
        EXPECT_EQ(sources->at(1).repository_url, "https://h/o/r");
        EXPECT_EQ(sources->at(1).permissions.at(0).user_id, "u");
        EXPECT_TRUE(sources->at(1).permissions.at(0).read);
        EXPECT_FALSE(sources->at(1).permissions.at(0).write);
        EXPECT_THAT(fixture.server.seen().back().body, HasSubstr(R"("after":"c1")"));
        CO_ASSERT_OK(co_await fixture.client.set_permissions(sources->at(0), deadline_after(3s)));
        EXPECT_THAT(
            fixture.server.seen().back().body,
            HasSubstr(R"({"gitSource":"one","namespace":"ns","permissions":[{"read":true,)"));
        EXPECT_FALSE(co_await fixture.client.git_sources("prod", deadline_after(3s)));
        const auto unknown = co_await fixture.client.git_sources("prod", deadline_after(3s));
        CO_ASSERT_TRUE(!unknown);
        EXPECT_THAT(unknown.error().message, HasSubstr("Cannot query field"));
      });
}

// A message of a peer that was cut to a number of bytes.
TEST(GraphqlClient, ATextThatEndsWithinACharacterIsSent) {
  with_fixture({make_response(200, R"({"data":{"reportRuntimeErrors":true}})")},
               [](Fixture& fixture) -> Task<> {
                 const std::vector<RuntimeError> errors{
                     {.level = RuntimeError::Level::error, .message = "refused: caf\xc3"}};
                 const auto reported = co_await fixture.client.report_errors("production", errors,
                                                                             deadline_after(3s));
                 CO_ASSERT_OK(reported);
                 EXPECT_THAT(fixture.server.seen().back().body, HasSubstr("refused: caf\uFFFD\""));
               });
}

TEST(GraphqlClient, ReadsRulesAndRefusesThoseItCannotRead) {
  with_fixture(
      {make_response(
           200,
           R"({"data":{"abacRules":[{"id":"r1","teams":["t1"],"actions":["SYNC"],"attributes":
                       [{"name":"LABEL","key":"team","value":"a"},{"name":"CLUSTER","value":"c"}]}]}})"),
       make_response(200, R"({"data":{"abacRules":[{"id":"r1","teams":["t1"],"actions":["SYNC"],
                       "attributes":[{"value":"c"}]}]}})"),
       make_response(200, R"({"data":{"abacRules":[{"id":"r1","teams":["t1"],"actions":["SYNC"],
                       "attributes":[{"name":"LABEL","key":"team","value":null}]}]}})"),
       make_response(200, R"({"data":{"abacRules":[{"id":"r1","teams":["t1"],"actions":["SYNC"],
                       "attributes":[{"name":"LABEL","key":7,"value":"a"}]}]}})"),
       make_response(200, R"({"data":{"abacRules":[{"id":"r1","attributes":"CLUSTER"}]}})"),
       make_response(200, R"({"data":{"abacRules":null}})"),
       make_response(200, R"([{"_id":"t1","users":[{"_id":"u1"},{"_id":"u2"}]},{"_id":"t2","users":
                       [{"_id":"u1"},{}]},{"users":[{"_id":"u3"}]},{"_id":"t4"}])")},
      [](Fixture& fixture) -> Task<> {
        const std::string account = "a1";
        const auto rules = [&] {
          return fixture.client.abac_rules(account, "gitopsApplications", deadline_after(3s));
        };
        const auto read = co_await rules();
        CO_ASSERT_OK(read);
        EXPECT_EQ(*read, (std::vector<AbacRule>{
                             {.id = "r1",
                              .entity_type = "gitopsApplications",
                              .teams = {"t1"},
                              .tags = {},
                              .actions = {"SYNC"},
                              .attributes = {{"LABEL", "team", "a"}, {"CLUSTER", "", "c"}}}}));
        for (int i = 0; i < 5; ++i) EXPECT_FALSE(co_await rules());
        const auto teams = co_await fixture.client.teams(deadline_after(3s));
        CO_ASSERT_OK(teams);
        EXPECT_EQ(*teams, (std::map<std::string, std::vector<std::string>>{{"u1", {"t1", "t2"}},
                                                                           {"u2", {"t1"}}}));
      });
}

}  // namespace
}  // namespace gitops::control_plane
