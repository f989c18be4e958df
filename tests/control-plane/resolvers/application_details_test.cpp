// The journal and the manifests of one Application are for whoever sees the Application.
#include "control-plane/resolvers/application_details.hpp"

#include <gmock/gmock.h>

#include "control-plane/resolvers/graphql_fixture.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

constexpr const char* kJournal =
    "{applicationJournal(runtime: \"prod\", namespace: \"argocd\", name: \"shop\", pagination: "
    "{first: 1}){edges{node{kind eventId sequence reportedAt receivedAt step object{group kind "
    "namespace name} revision syncStatus healthStatus healthMessage phase commitAuthor "
    "commitMessage reason bytes}} pageInfo{hasNextPage endCursor}}}";
constexpr const char* kResource =
    "{applicationResource(runtime: \"prod\", namespace: \"argocd\", name: \"shop\", resource: "
    "{kind: \"ConfigMap\", namespace: \"shop\", name: \"settings\"}){kind name liveManifest "
    "desiredManifest gitManifest masked presence seenAt syncStatus}}";

Task<> send(GraphqlFixture& graphql, Seeder& seeder, std::string body) {
  auto stored = co_await graphql.accounts.database.with_writer(
      AccountsFixture::soon(), [&, body](store::Connection& db) -> Result<std::int64_t> {
        return seeder.store(db, graphql.sample.acme.number, body);
      });
  must(std::move(stored));
}

TEST(ApplicationDetails, AC_34_AreNullForWhoDoesNotSeeTheApplication) {
  with_graphql([](GraphqlFixture& graphql) -> Task<> {
    Seeder seeder(store::Engine::sqlite);
    co_await send(graphql, seeder, app_event(application_of("shop")));
    co_await send(graphql, seeder,
                  app_event(object_of("v1", "ConfigMap", "shop", "settings"), managed_by("shop")));
    for (const auto* token : {&graphql.sample.ann_key, &graphql.sample.bob_key}) {
      const auto journal = co_await graphql.ask(*token, kJournal);
      CO_ASSERT_TRUE(!journal.contains("errors")) << journal;
      const auto& slice = journal["data"]["applicationJournal"];
      EXPECT_EQ(slice["edges"].size(), 1U);
      EXPECT_EQ(slice["edges"][0]["node"]["object"]["kind"], "ConfigMap");
      EXPECT_EQ(slice["pageInfo"]["hasNextPage"], true);
      const auto resource = co_await graphql.ask(*token, kResource);
      CO_ASSERT_TRUE(!resource.contains("errors")) << resource;
      EXPECT_EQ(resource["data"]["applicationResource"]["presence"], "LIVE");
    }
    // Of another account, and of a user with no rule.
    const Json none{{"data", {{"applicationJournal", nullptr}}}};
    EXPECT_EQ(co_await graphql.ask(graphql.sample.eve_key, kJournal), none);
    co_await add_rule(graphql, {"VIEW"}, {}, "admins");
    EXPECT_EQ(co_await graphql.ask(graphql.sample.bob_key, kJournal), none);
    const Json no_resource{{"data", {{"applicationResource", nullptr}}}};
    EXPECT_EQ(co_await graphql.ask(graphql.sample.bob_key, kResource), no_resource);
    EXPECT_EQ(co_await graphql.ask(graphql.sample.eve_key, kResource), no_resource);
    EXPECT_EQ((co_await graphql.ask(graphql.sample.ann_key,
                                    kJournal))["data"]["applicationJournal"]["edges"]
                  .size(),
              1U);
  });
}

TEST(ApplicationDetails, ACursorOfAnotherListIsRefused) {
  with_graphql([](GraphqlFixture& graphql) -> Task<> {
    const auto answer = co_await graphql.ask(
        graphql.sample.ann_key,
        "{applicationJournal(runtime: \"prod\", namespace: \"argocd\", name: \"shop\", "
        "pagination: {first: 1, after: \"eA\"}){pageInfo{endCursor}}}");
    EXPECT_EQ(answer["errors"][0]["extensions"]["code"], "INVALID_ARGUMENT") << answer;
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
