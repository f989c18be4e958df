// A VIEW rule hides Applications: they are null, and absent in lists whose pages stay full.
#include "control-plane/resolvers/visible.hpp"

#include <utility>

#include <gmock/gmock.h>

#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/service_accounts.hpp"
#include "control-plane/accounts/teams.hpp"
#include "control-plane/resolvers/graphql_fixture.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

Json application_of_team(const std::string& name, const std::string& team) {
  auto application = application_of(name);
  application["metadata"]["labels"] = {{"team", team}};
  application["status"]["history"] = Json::array(
      {{{"id", 1}, {"revision", std::string(40, 'c')}, {"deployedAt", "2026-03-04T09:10:00Z"}}});
  return application;
}

struct VisibleFixture {
  explicit VisibleFixture(GraphqlFixture& on) : graphql(on) {}

  Task<> send(const Json& application, std::string runtime = "prod") {
    auto stored = co_await graphql.accounts.database.with_writer(
        AccountsFixture::soon(),
        [this, body = app_event(application, {{"historyId", 1}}),
         runtime](store::Connection& db) -> Result<std::int64_t> {
          return seeder.store(db, graphql.sample.acme.number, body, runtime);
        });
    must(std::move(stored));
  }
  // Adds a rule for a built-in team, or for no team of bob when `team` is "admins".
  Task<> allow(std::vector<AbacRule::Attribute> attributes, std::string team = "users") {
    co_await add_rule(graphql, {"VIEW"}, std::move(attributes), std::move(team));
  }
  Task<Json> ask(const Secret& token, std::string query, Json variables = Json::object()) {
    auto response = co_await graphql.ask(token, std::move(query), std::move(variables));
    EXPECT_FALSE(response.contains("errors")) << response;
    co_return response["data"];
  }
  // The names of one page of Applications.
  Task<std::vector<std::string>> names(const Secret& token, Json filters = Json::object(),
                                       int first = 100) {
    const auto data = co_await ask(
        token,
        "query($filters: ApplicationsFilterArgs, $first: Int){applications(filters: $filters, "
        "pagination: {first: $first}){edges{node{metadata{name}}} pageInfo{hasNextPage}}}",
        {{"filters", std::move(filters)}, {"first", first}});
    std::vector<std::string> found;
    for (const auto& edge : data["applications"]["edges"]) {
      found.push_back(edge["node"]["metadata"]["name"]);
    }
    co_return found;
  }
  Task<bool> finds(const Secret& token, const std::string& name) {
    const auto data =
        co_await ask(token, "{application(runtime: \"prod\", namespace: \"argocd\", name: \"" +
                                name + "\"){metadata{name}}}");
    co_return !data["application"].is_null();
  }

  GraphqlFixture& graphql;
  SampleAccounts& sample = graphql.sample;
  Seeder seeder{store::Engine::sqlite};
};

void with_applications(const std::function<Task<>(VisibleFixture&)>& body) {
  with_graphql([&](GraphqlFixture& graphql) -> Task<> {
    VisibleFixture fixture(graphql);
    co_await fixture.send(application_of_team("one", "a"));
    co_await fixture.send(application_of_team("three", "a"), "stage");
    co_await fixture.send(application_of_team("two", "b"));
    co_await body(fixture);
  });
}

TEST(Visible, WithoutARuleEverybodySeesAll) {
  with_applications([](VisibleFixture& fixture) -> Task<> {
    EXPECT_THAT(co_await fixture.names(fixture.sample.bob_key), ElementsAre("one", "three", "two"));
    EXPECT_TRUE(co_await fixture.finds(fixture.sample.bob_key, "two"));
  });
}

// As a runtime answers, which knows the rule "default-view" of the team of all users.
TEST(Visible, AC_34_WithoutARuleAServiceAccountSeesAllInTheTeamOfAllUsers) {
  with_applications([](VisibleFixture& fixture) -> Task<> {
    using Keys = std::pair<Secret, Secret>;
    const auto keys = must(co_await fixture.graphql.accounts.write(
        [account = fixture.sample.acme.number](store::Connection& db) -> Result<Keys> {
          std::vector<std::string> users;
          for (const auto& team : must(list_teams(db, account))) {
            if (team.name == kUsersTeam) users.push_back(team.id);
          }
          const auto key = [&](const std::string& name, const std::vector<std::string>& teams) {
            const auto made =
                must(create_service_account(db, account, {.name = name, .teams = teams}, kNow));
            return must(create_user_key(db, account, made.id, {.name = "k"}, kNow)).text;
          };
          return Keys(key("ci", users), key("idle", {}));
        }));
    EXPECT_THAT(co_await fixture.names(keys.first), ElementsAre("one", "three", "two"));
    EXPECT_TRUE(co_await fixture.finds(keys.first, "two"));
    EXPECT_THAT(co_await fixture.names(keys.second), IsEmpty());
    EXPECT_FALSE(co_await fixture.finds(keys.second, "two"));
  });
}

TEST(Visible, AC_34_AHiddenApplicationIsNullAndAbsent) {
  with_applications([](VisibleFixture& fixture) -> Task<> {
    co_await fixture.allow({{.name = "LABEL", .key = "team", .value = "a"}});
    EXPECT_THAT(co_await fixture.names(fixture.sample.bob_key), ElementsAre("one", "three"));
    EXPECT_TRUE(co_await fixture.finds(fixture.sample.bob_key, "one"));
    EXPECT_FALSE(co_await fixture.finds(fixture.sample.bob_key, "two"));
    // A filter of the caller narrows further.
    EXPECT_THAT(co_await fixture.names(fixture.sample.bob_key, {{"labels", {"team=b"}}}),
                IsEmpty());
    EXPECT_THAT(co_await fixture.names(fixture.sample.bob_key, {{"runtimes", {"stage"}}}),
                ElementsAre("three"));
    // Administrators and runtimes see all.
    for (const auto* token : {&fixture.sample.ann_key, &fixture.sample.prod_token}) {
      EXPECT_THAT(co_await fixture.names(*token), ElementsAre("one", "three", "two"));
      EXPECT_TRUE(co_await fixture.finds(*token, "two"));
    }
  });
}

TEST(Visible, ARuleForAnotherTeamHidesAll) {
  with_applications([](VisibleFixture& fixture) -> Task<> {
    co_await fixture.allow({}, "admins");
    EXPECT_THAT(co_await fixture.names(fixture.sample.bob_key), IsEmpty());
    EXPECT_FALSE(co_await fixture.finds(fixture.sample.bob_key, "one"));
  });
}

TEST(Visible, APageIsFullAlthoughMostIsHidden) {
  with_applications([](VisibleFixture& fixture) -> Task<> {
    co_await fixture.allow({{.name = "LABEL", .key = "team", .value = "z"},
                            {.name = "RUNTIME", .key = {}, .value = "prod"}});
    co_await fixture.allow({{.name = "PRODUCT_NAME", .key = {}, .value = "store"}});
    for (int i = 0; i < 40; ++i) {
      const auto number = std::to_string(100 + i);
      co_await fixture.send(application_of_team("app-" + number, i % 10 == 9 ? "z" : "b"));
    }
    EXPECT_THAT(co_await fixture.names(fixture.sample.bob_key, Json::object(), 3),
                ElementsAre("app-109", "app-119", "app-129"));
  });
}

TEST(Visible, ReleasesOfAHiddenApplicationAreAbsent) {
  with_applications([](VisibleFixture& fixture) -> Task<> {
    const std::string releases =
        "{gitopsReleases(pagination: {first: 20}){edges{node{applicationMetadata{name}}}}}";
    const auto names = [&](const Json& data) {
      std::vector<std::string> found;
      for (const auto& edge : data["gitopsReleases"]["edges"]) {
        found.push_back(edge["node"]["applicationMetadata"]["name"]);
      }
      return found;
    };
    EXPECT_EQ(names(co_await fixture.ask(fixture.sample.bob_key, releases)).size(), 3U);
    co_await fixture.allow({{.name = "LABEL", .key = "team", .value = "b"}});
    EXPECT_THAT(names(co_await fixture.ask(fixture.sample.bob_key, releases)), ElementsAre("two"));
    EXPECT_EQ(names(co_await fixture.ask(fixture.sample.ann_key, releases)).size(), 3U);
  });
}

TEST(Visible, ChildrenOfAReleaseAreThoseThatAreVisible) {
  with_applications([](VisibleFixture& fixture) -> Task<> {
    auto parent = application_of_team("parent", "a");
    for (const auto* name : {"one", "two"}) {
      parent["status"]["resources"].push_back({{"group", "argoproj.io"},
                                               {"kind", "Application"},
                                               {"namespace", "argocd"},
                                               {"name", name},
                                               {"status", "Synced"}});
    }
    co_await fixture.send(parent);
    co_await fixture.allow({{.name = "LABEL", .key = "team", .value = "a"}});
    const std::string children =
        "{gitopsReleases(filters: {name: \"parent\"}){edges{node{childApps{name}}}}}";
    const auto of = [&](const Json& data) {
      return data["gitopsReleases"]["edges"][0]["node"]["childApps"];
    };
    EXPECT_EQ(of(co_await fixture.ask(fixture.sample.bob_key, children)),
              Json::array({{{"name", "one"}}}));
    EXPECT_EQ(of(co_await fixture.ask(fixture.sample.ann_key, children)).size(), 2U);
  });
}

TEST(Visible, AVisibleApplicationOfTheSameNameIsFound) {
  with_applications([](VisibleFixture& fixture) -> Task<> {
    co_await fixture.send(application_of_team("one", "b"), "stage");
    co_await fixture.allow({{.name = "RUNTIME", .key = {}, .value = "stage"}});
    const auto data = co_await fixture.ask(
        fixture.sample.bob_key,
        "{application(runtime: \"\", namespace: \"argocd\", name: \"one\"){metadata{runtime}}}");
    EXPECT_EQ(data["application"]["metadata"]["runtime"], "stage") << data;
  });
}

TEST(Visible, ARolloutOfAHiddenApplicationHasNoStatus) {
  with_applications([](VisibleFixture& fixture) -> Task<> {
    co_await fixture.allow({}, "admins");
    const auto data = co_await fixture.ask(
        fixture.sample.bob_key,
        "{rolloutStepStatus(runtime: \"prod\", appNamespace: \"argocd\", appName: \"one\", "
        "commitSHA: \"c\", rollout: \"r\", stepIndex: 0){status}}");
    EXPECT_TRUE(data["rolloutStepStatus"].is_null());
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
