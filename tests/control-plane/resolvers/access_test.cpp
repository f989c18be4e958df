// Who may do what on an entity, and by which rule.
#include <gmock/gmock.h>

#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/rules.hpp"
#include "control-plane/accounts/service_accounts.hpp"
#include "control-plane/accounts/teams.hpp"
#include "control-plane/resolvers/graphql_fixture.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kAccess =
    "query($entity: AccessEntityInput!, $userId: ID){access(entity: $entity, userId: $userId){"
    "user{id name} action allowed reason rule{id} team{name}}}";
constexpr const char* kUsers =
    "query($entity: AccessEntityInput!, $action: AbacActionNames!){usersWithAccess(entity: "
    "$entity, action: $action){user{name} reason rule{id}}}";

Json entity_named(const std::string& name) {
  return {{"entityType", "gitopsApplications"},
          {"runtime", "prod"},
          {"namespace", "argocd"},
          {"name", name}};
}

struct AccessFixture {
  explicit AccessFixture(GraphqlFixture& on) : graphql(on) {}

  Task<> add_application(const std::string& name) {
    auto stored = co_await graphql.accounts.database.with_writer(
        AccountsFixture::soon(), [this, name](store::Connection& db) -> Result<std::int64_t> {
          return seeder.store(db, graphql.sample.acme.number, app_event(application_of(name)));
        });
    must(std::move(stored));
  }
  // Adds a rule for a built-in team and returns its id.
  Task<std::string> allow(std::vector<std::string> actions, std::string team = "users",
                          std::vector<AbacRule::Attribute> attributes = {}) {
    return add_rule(graphql, std::move(actions), std::move(attributes), std::move(team));
  }
  // Returns the decision about one action.
  Task<Json> decision(const Secret& token, std::string action, Json user = nullptr) {
    const auto response = co_await graphql.ask(
        token, kAccess, {{"entity", entity_named("shop")}, {"userId", std::move(user)}});
    EXPECT_FALSE(response.contains("errors")) << response;
    for (const auto& one : response["data"]["access"]) {
      if (one["action"] == action) co_return one;
    }
    co_return Json();
  }
  Task<std::vector<std::string>> users_who_may(std::string action) {
    const auto response =
        co_await graphql.ask(graphql.sample.ann_key, kUsers,
                             {{"entity", entity_named("shop")}, {"action", std::move(action)}});
    EXPECT_FALSE(response.contains("errors")) << response;
    std::vector<std::string> names;
    for (const auto& one : response["data"]["usersWithAccess"]) {
      names.push_back(one["user"]["name"]);
    }
    co_return names;
  }

  GraphqlFixture& graphql;
  SampleAccounts& sample = graphql.sample;
  Seeder seeder{store::Engine::sqlite};
};

void with_shop(const std::function<Task<>(AccessFixture&)>& body) {
  with_graphql([&](GraphqlFixture& graphql) -> Task<> {
    AccessFixture fixture(graphql);
    co_await fixture.add_application("shop");
    co_await body(fixture);
  });
}

TEST(Access, WithoutRulesUsersSeeAndAdministratorsDoEverything) {
  with_shop([](AccessFixture& fixture) -> Task<> {
    const auto view = co_await fixture.decision(fixture.sample.bob_key, "VIEW");
    EXPECT_EQ(view["allowed"], true);
    EXPECT_EQ(view["reason"], "DEFAULT");
    EXPECT_EQ(view["rule"], nullptr);
    EXPECT_EQ(view["team"]["name"], "users");
    const auto sync = co_await fixture.decision(fixture.sample.bob_key, "SYNC");
    EXPECT_EQ(sync["allowed"], false);
    EXPECT_EQ(sync["reason"], "NO_RULE");
    const auto own = co_await fixture.decision(fixture.sample.ann_key, "SYNC");
    EXPECT_EQ(own["allowed"], true);
    EXPECT_EQ(own["reason"], "ADMINISTRATOR");
  });
}

TEST(Access, TheDecidingRuleAndTeamAreNamed) {
  with_shop([](AccessFixture& fixture) -> Task<> {
    co_await fixture.allow({"SYNC"}, "users", {{.name = "RUNTIME", .key = {}, .value = "stage"}});
    EXPECT_EQ((co_await fixture.decision(fixture.sample.bob_key, "SYNC"))["allowed"], false);
    const auto id = co_await fixture.allow({"SYNC"}, "users",
                                           {{.name = "RUNTIME", .key = {}, .value = "prod"}});
    for (const auto* action : {"SYNC", "REFRESH"}) {
      const auto decision = co_await fixture.decision(fixture.sample.bob_key, action);
      EXPECT_EQ(decision["reason"], "RULE") << action;
      EXPECT_EQ(decision["rule"]["id"], id);
      EXPECT_EQ(decision["team"]["name"], "users");
    }
    EXPECT_THAT(co_await fixture.users_who_may("SYNC"), ElementsAre("ann", "bob"));
    EXPECT_THAT(co_await fixture.users_who_may("APP_ROLLBACK"), ElementsAre("ann"));
  });
}

TEST(Access, AnAdministratorAsksForOthersAndADisabledUserMayNothing) {
  with_shop([](AccessFixture& fixture) -> Task<> {
    co_await fixture.allow({"SYNC"});
    auto& sample = fixture.sample;
    const auto theirs = co_await fixture.decision(sample.ann_key, "SYNC", sample.bob.id);
    EXPECT_EQ(theirs["user"]["name"], "bob");
    EXPECT_EQ(theirs["allowed"], true);
    must(co_await fixture.graphql.accounts.write(
        [id = sample.bob.id](store::Connection& db) { return set_disabled(db, id, true); }));
    const auto disabled = co_await fixture.decision(sample.ann_key, "SYNC", sample.bob.id);
    EXPECT_EQ(disabled["allowed"], false);
    EXPECT_EQ(disabled["reason"], "DISABLED");
    EXPECT_THAT(co_await fixture.users_who_may("SYNC"), ElementsAre("ann"));
  });
}

TEST(Access, AUserAsksForNobodyElse) {
  with_shop([](AccessFixture& fixture) -> Task<> {
    auto& sample = fixture.sample;
    const auto others = co_await fixture.graphql.ask(
        sample.bob_key, kAccess, {{"entity", entity_named("shop")}, {"userId", sample.ann.id}});
    EXPECT_THAT(others.dump(), HasSubstr("only an administrator"));
    const auto all = co_await fixture.graphql.ask(
        sample.bob_key, kUsers, {{"entity", entity_named("shop")}, {"action", "SYNC"}});
    EXPECT_THAT(all.dump(), HasSubstr("only an administrator"));
  });
}

TEST(Access, AHiddenApplicationAnswersAsOneThatDoesNotExist) {
  with_shop([](AccessFixture& fixture) -> Task<> {
    auto& sample = fixture.sample;
    co_await fixture.allow({"VIEW"}, "admins");
    const auto message = [&](std::string name) -> Task<Json> {
      auto response =
          co_await fixture.graphql.ask(sample.bob_key, kAccess, {{"entity", entity_named(name)}});
      co_return response["errors"][0]["message"];
    };
    const Json hidden = co_await message("shop");
    const Json missing = co_await message("nope");
    EXPECT_EQ(hidden, "Application \"shop\" not found");
    EXPECT_EQ(missing, "Application \"nope\" not found");
    // An administrator learns why.
    const auto theirs = co_await fixture.decision(sample.ann_key, "VIEW", sample.bob.id);
    EXPECT_EQ(theirs["reason"], "NO_RULE");
  });
}

TEST(Access, EntitiesThatTheServerDoesNotKnowAreRefused) {
  with_shop([](AccessFixture& fixture) -> Task<> {
    auto entity = entity_named("shop");
    entity["entityType"] = "products";
    const auto response =
        co_await fixture.graphql.ask(fixture.sample.bob_key, kAccess, {{"entity", entity}});
    EXPECT_THAT(response.dump(), HasSubstr("products has no entities here"));
  });
}

TEST(Access, AServiceAccountHasTheRulesOfItsTeams) {
  with_shop([](AccessFixture& fixture) -> Task<> {
    const auto rule = co_await fixture.allow({"VIEW", "SYNC"});
    auto made = co_await fixture.graphql.accounts.write(
        [number = fixture.graphql.sample.acme.number](
            store::Connection& db) -> Result<std::pair<std::string, Secret>> {
          std::vector<std::string> users;
          for (const auto& team : must(list_teams(db, number))) {
            if (team.name == kUsersTeam) users.push_back(team.id);
          }
          const auto one =
              must(create_service_account(db, number, {.name = "ci", .teams = users}, kNow));
          must(create_service_account(db, number, {.name = "idle"}, kNow));
          return std::pair(one.id,
                           must(create_user_key(db, number, one.id, {.name = "k"}, kNow)).text);
        });
    const auto [id, key] = must(std::move(made));
    const auto own = co_await fixture.decision(key, "SYNC");
    EXPECT_EQ(own["allowed"], true);
    EXPECT_EQ(own["rule"]["id"], rule);
    EXPECT_EQ(own["user"]["name"], "ci");
    const auto asked = co_await fixture.decision(fixture.graphql.sample.ann_key, "SYNC", id);
    EXPECT_EQ(asked["allowed"], true);
    EXPECT_THAT(co_await fixture.users_who_may("SYNC"), testing::Contains("ci"));
    EXPECT_THAT(co_await fixture.users_who_may("SYNC"), testing::Not(testing::Contains("idle")));
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
