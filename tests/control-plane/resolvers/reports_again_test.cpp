// Who may have an Application reported again, and what the answer says.
#include "control-plane/resolvers/reports_again.hpp"

#include <gmock/gmock.h>

#include "control-plane/resolvers/graphql_fixture.hpp"
#include "control-plane/storage/report_request_store.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

std::string again(const std::string& name, const std::string& runtime = "prod") {
  return "mutation{reportApplicationAgain(runtime: \"" + runtime +
         "\", namespace: \"argocd\", name: \"" + name + "\"){state requestedAt expiresAt message}}";
}

Task<> send_shop(GraphqlFixture& graphql, Seeder& seeder) {
  auto stored = co_await graphql.accounts.database.with_writer(
      AccountsFixture::soon(), [&](store::Connection& db) -> Result<std::int64_t> {
        return seeder.store(db, graphql.sample.acme.number, app_event(application_of("shop")));
      });
  must(std::move(stored));
}

Task<std::size_t> open_requests(GraphqlFixture& graphql) {
  auto rows = co_await graphql.accounts.write([&](store::Connection& db) {
    return open_report_requests(db, graphql.sample.acme.number, micros_at(wall_now()));
  });
  co_return must(std::move(rows)).size();
}

TEST(ReportsAgain, ARequestIsMadeOnceUntilAnEventArrives) {
  with_graphql([](GraphqlFixture& graphql) -> Task<> {
    Seeder seeder(store::Engine::sqlite);
    co_await send_shop(graphql, seeder);
    const auto first = co_await graphql.ask(graphql.sample.ann_key, again("shop"));
    CO_ASSERT_TRUE(!first.contains("errors")) << first;
    const auto& asked = first["data"]["reportApplicationAgain"];
    EXPECT_EQ(asked["state"], "REQUESTED");
    EXPECT_LT(asked["requestedAt"], asked["expiresAt"]);
    EXPECT_THAT(asked["message"].get<std::string>(),
                AllOf(HasSubstr("heartbeat"), HasSubstr("once more"), HasSubstr("new ids")));
    const auto second = co_await graphql.ask(graphql.sample.ann_key, again("shop"));
    EXPECT_EQ(second["data"]["reportApplicationAgain"]["state"], "ALREADY_REQUESTED");
    EXPECT_EQ(second["data"]["reportApplicationAgain"]["requestedAt"], asked["requestedAt"]);
    EXPECT_EQ(co_await open_requests(graphql), 1U);
    co_await send_shop(graphql, seeder);
    const auto third = co_await graphql.ask(graphql.sample.ann_key, again("shop"));
    EXPECT_EQ(third["data"]["reportApplicationAgain"]["state"], "REQUESTED");
  });
}

TEST(ReportsAgain, ItNeedsTheRuleOfARefresh) {
  with_graphql([](GraphqlFixture& graphql) -> Task<> {
    Seeder seeder(store::Engine::sqlite);
    co_await send_shop(graphql, seeder);
    const auto& bob = graphql.sample.bob_key;
    const auto refused = co_await graphql.ask(bob, again("shop"));
    EXPECT_EQ(refused["errors"][0]["message"], "no rule of the account allows REFRESH") << refused;
    EXPECT_EQ(refused["errors"][0]["extensions"]["code"], "FORBIDDEN") << refused;
    co_await add_rule(graphql, {"VIEW", "APP_ROLLBACK"}, {}, "users");
    co_await add_rule(graphql, {"REFRESH"}, {{.name = "NAMESPACE", .key = {}, .value = "other"}},
                      "users");
    EXPECT_TRUE((co_await graphql.ask(bob, again("shop"))).contains("errors"));
    EXPECT_EQ(co_await open_requests(graphql), 0U);
    co_await add_rule(graphql, {"REFRESH"}, {{.name = "NAMESPACE", .key = {}, .value = "argocd"}},
                      "users");
    const auto allowed = co_await graphql.ask(bob, again("shop"));
    EXPECT_EQ(allowed["data"]["reportApplicationAgain"]["state"], "REQUESTED") << allowed;
  });
}

TEST(ReportsAgain, ARuleForASyncIncludesIt) {
  with_graphql([](GraphqlFixture& graphql) -> Task<> {
    Seeder seeder(store::Engine::sqlite);
    co_await send_shop(graphql, seeder);
    co_await add_rule(graphql, {"SYNC"}, {}, "users");
    const auto allowed = co_await graphql.ask(graphql.sample.bob_key, again("shop"));
    EXPECT_EQ(allowed["data"]["reportApplicationAgain"]["state"], "REQUESTED") << allowed;
  });
}

TEST(ReportsAgain, WhatIsHiddenOrElsewhereIsNotFound) {
  with_graphql([](GraphqlFixture& graphql) -> Task<> {
    Seeder seeder(store::Engine::sqlite);
    co_await send_shop(graphql, seeder);
    co_await add_rule(graphql, {"REFRESH"}, {}, "users");
    co_await add_rule(graphql, {"VIEW"}, {}, "admins");
    const auto& sample = graphql.sample;
    for (const auto& [key, query] :
         {std::pair(&sample.bob_key, again("shop")), std::pair(&sample.eve_key, again("shop")),
          std::pair(&sample.ann_key, again("nothing")),
          std::pair(&sample.ann_key, again("shop", "stage"))}) {
      const auto answer = co_await graphql.ask(*key, query);
      EXPECT_EQ(answer["errors"][0]["extensions"]["code"], "NOT_FOUND") << answer;
    }
    EXPECT_EQ(co_await open_requests(graphql), 0U);
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
