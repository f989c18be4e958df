#include "control-plane/resolvers/table.hpp"

#include <algorithm>
#include <cstddef>
#include <set>

#include <gmock/gmock.h>

#include "control-plane/accounts/revocations.hpp"
#include "control-plane/resolvers/graphql_fixture.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;

// The 22 root fields of the public SDK and command line.
constexpr const char* kPublicFields[] = {"me",
                                         "runtimes",
                                         "runtime",
                                         "deleteRuntime",
                                         "clusters",
                                         "components",
                                         "gitSources",
                                         "workflows",
                                         "workflow",
                                         "pipelines",
                                         "pipeline",
                                         "promotions",
                                         "productReleases",
                                         "updateCsdpSettings",
                                         "limitsStatus",
                                         "createRuntime",
                                         "reportRuntimeErrors",
                                         "suggestIscRepo",
                                         "deleteManagedRuntime",
                                         "migrateRuntime",
                                         "promotionTemplateByRuntime",
                                         "latestCliRelease"};

TEST(Table, EveryFieldOfTheSchemaHasARow) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    std::set<std::string> fields;
    for (const auto& row : fixture.rows) EXPECT_TRUE(fields.insert(row.field).second) << row.field;
    for (const auto* field : kPublicFields) EXPECT_TRUE(fields.contains(field)) << field;
    co_return;
  });
}

TEST(Table, NothingIsOpenToAll) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    for (const auto& row : fixture.rows) {
      EXPECT_NE(row.permission, Permission::anyone) << row.field;
      EXPECT_EQ(row.changes, row.root == RootType::mutation) << row.field;
      EXPECT_FALSE(row.scopes.empty()) << row.field;
      EXPECT_EQ(std::ranges::find(row.scopes, kScopeWrite) != row.scopes.end(), row.changes)
          << row.field;
    }
    EXPECT_EQ(permission_of(fixture.rows, RootType::query, "__schema"), Permission::member);
    EXPECT_EQ(permission_of(fixture.rows, RootType::query, "__typename"), Permission::anyone);
    EXPECT_EQ(permission_of(fixture.rows, RootType::mutation, "createRuntime"), Permission::admin);
    co_return;
  });
}

TEST(Table, ObjectTypesAreThoseOfTheSchema) {
  EXPECT_THAT(
      object_types("scalar A\n\ntype Query {\n}\n\ntype B {\n}\n\ntype C implements D {\n}"),
      ElementsAre("B", "C"));
}

TEST(Table, APermissionIsThatOfAUserAnAdministratorOrARuntime) {
  Caller user;
  Caller admin;
  admin.is_admin = true;
  Caller runtime;
  runtime.runtime = "prod";
  const auto is_allowed = [](Permission permission, const Caller* caller) {
    return !refusal(permission, caller).has_value();
  };
  EXPECT_TRUE(is_allowed(Permission::anyone, nullptr));
  for (const auto permission :
       {Permission::member, Permission::user, Permission::admin, Permission::runtime}) {
    EXPECT_EQ(refusal(permission, nullptr)->http_status, 401);
  }
  for (const auto* caller : {&user, &admin, &runtime}) {
    EXPECT_TRUE(is_allowed(Permission::member, caller));
  }
  EXPECT_TRUE(is_allowed(Permission::user, &user));
  EXPECT_FALSE(is_allowed(Permission::user, &runtime));
  EXPECT_TRUE(is_allowed(Permission::admin, &admin));
  EXPECT_FALSE(is_allowed(Permission::admin, &user));
  EXPECT_FALSE(is_allowed(Permission::admin, &runtime));
  EXPECT_TRUE(is_allowed(Permission::runtime, &runtime));
  EXPECT_FALSE(is_allowed(Permission::runtime, &admin));
  EXPECT_EQ(refusal(Permission::admin, &user)->http_status, 403);
}

TEST(UserFields, TheSdksMeIsComplete) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const auto response = co_await fixture.ask(
        fixture.sample.ann_key,
        "query Me { me { id name email isAdmin accounts { id name } activeAccount { id name "
        "gitProvider gitApiUrl sharedConfigRepo admins features { gitopsPlanEnforcement } } } }");
    CO_ASSERT_TRUE(!response.contains("errors")) << response;
    const auto& me = response["data"]["me"];
    EXPECT_EQ(me["id"], fixture.sample.ann.id);
    EXPECT_EQ(me["name"], "ann");
    EXPECT_EQ(me["isAdmin"], true);
    EXPECT_EQ(me["accounts"], Json::array({{{"id", fixture.sample.acme.id}, {"name", "acme"}}}));
    EXPECT_EQ(me["activeAccount"]["name"], "acme");
    EXPECT_EQ(me["activeAccount"]["admins"], Json::array({fixture.sample.ann.id}));
    EXPECT_TRUE(me["activeAccount"]["gitProvider"].is_null());
    EXPECT_EQ(me["activeAccount"]["features"]["gitopsPlanEnforcement"], false);
  });
}

TEST(UserFields, TheAccountsSettingsAreChangedByAdministrators) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const std::string update =
        R"(mutation{updateCsdpSettings(gitProvider:GITEA,gitApiUrl:"https://git.example",
           sharedConfigRepo:"https://git.example/acme/isc.git")})";
    const auto refused = co_await fixture.ask(fixture.sample.bob_key, update);
    EXPECT_EQ(refused["errors"][0]["extensions"]["code"], "FORBIDDEN") << refused;
    const auto set = co_await fixture.ask(fixture.sample.ann_key, update);
    EXPECT_EQ(set, (Json{{"data", {{"updateCsdpSettings", nullptr}}}}));
    const std::string ask = "{me{activeAccount{gitProvider gitApiUrl sharedConfigRepo}}}";
    // The public SDK cannot decode this word.
    EXPECT_TRUE((co_await fixture.ask(fixture.sample.bob_key,
                                      ask))["data"]["me"]["activeAccount"]["gitProvider"]
                    .is_null());
    const auto own = co_await fixture.ask(fixture.sample.prod_token, ask);
    EXPECT_EQ(own["data"]["me"]["activeAccount"]["gitProvider"], "GITEA") << own;
    const auto wrong =
        co_await fixture.ask(fixture.sample.ann_key,
                             R"(mutation{updateCsdpSettings(gitProvider:GITHUB,gitApiUrl:"ftp://x",
           sharedConfigRepo:"https://git.example/a.git")})");
    EXPECT_EQ(wrong["errors"][0]["extensions"]["code"], "INVALID_ARGUMENT") << wrong;
  });
}

TEST(UserFields, TheFirstSuggestedRepositoryCounts) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const auto suggest = [](const std::string& repository) {
      return "mutation{suggestIscRepo(suggestedSharedConfigRepo:\"" + repository + "\")}";
    };
    const std::string first = "https://git.example/a.git";
    EXPECT_EQ(
        (co_await fixture.ask(fixture.sample.prod_token, suggest(first)))["data"]["suggestIscRepo"],
        first);
    EXPECT_EQ(
        (co_await fixture.ask(fixture.sample.prod_token,
                              suggest("https://git.example/b.git")))["data"]["suggestIscRepo"],
        first);
  });
}

// They have the account's settings in memory, with each caller.
TEST(UserFields, OtherProcessesHearOfTheAccountsSettings) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const auto count = [&fixture]() -> Task<std::ptrdiff_t> {
      auto found = co_await fixture.accounts.write(
          [](store::Connection& db) { return revocations_since(db, 0); });
      co_return std::ranges::count(must(std::move(found)), fixture.sample.acme.id,
                                   &RecordedRevocation::subject);
    };
    const auto before = co_await count();
    const std::string suggest =
        R"(mutation{suggestIscRepo(suggestedSharedConfigRepo:"https://git.example/a.git")})";
    co_await fixture.ask(fixture.sample.prod_token, suggest);
    EXPECT_EQ(co_await count(), before + 1);
    co_await fixture.ask(fixture.sample.prod_token, suggest);
    EXPECT_EQ(co_await count(), before + 1) << "it changed nothing";
    co_await fixture.ask(fixture.sample.ann_key,
                         R"(mutation{updateCsdpSettings(gitProvider:GITEA,
           gitApiUrl:"https://git.example",sharedConfigRepo:"https://git.example/b.git")})");
    EXPECT_EQ(co_await count(), before + 2);
  });
}

TEST(UserFields, ThereAreNoLimits) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const auto response = co_await fixture.ask(
        fixture.sample.bob_key,
        "query LimitsStatus{limitsStatus{usage{clusters applications} limits{clusters "
        "applications} status}}");
    EXPECT_EQ(response["data"]["limitsStatus"],
              (Json{{"usage", {{"clusters", 0}, {"applications", 0}}},
                    {"limits", nullptr},
                    {"status", true}}))
        << response;
  });
}

TEST(RuleFields, RulesAreMadeListedAndRemoved) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const std::string fields =
        "{id accountId entityType teams tags actions attributes{name key value}}";
    const auto admins = co_await team_id(fixture, "admins");
    const Json variables{
        {"accountId", ""},
        {"createAbacRuleInput",
         {{"entityType", "gitopsApplications"},
          {"teams", {admins}},
          {"actions", {"SYNC"}},
          {"attributes", Json::array({{{"name", "LABEL"}, {"key", "team"}, {"value", "a"}}})}}}};
    const std::string create =
        "mutation CreateAbacRule($accountId: String!, $createAbacRuleInput: "
        "CreateAbacRuleInput!){createAbacRule(accountId: $accountId, createAbacRuleInput: "
        "$createAbacRuleInput)" +
        fields + "}";
    const auto refused = co_await fixture.ask(fixture.sample.bob_key, create, variables);
    EXPECT_EQ(refused["errors"][0]["extensions"]["code"], "FORBIDDEN");
    const auto made = co_await fixture.ask(fixture.sample.ann_key, create, variables);
    CO_ASSERT_TRUE(!made.contains("errors")) << made;
    const auto rule = made["data"]["createAbacRule"];
    EXPECT_EQ(rule["accountId"], fixture.sample.acme.id);
    EXPECT_EQ(rule["attributes"][0]["key"], "team");
    const std::string list =
        "query($accountId: String!, $entityType: AbacEntityValues!){abacRules("
        "accountId: $accountId, entityType: $entityType)" +
        fields + "}";
    const auto own = co_await fixture.ask(
        fixture.sample.bob_key, list,
        {{"accountId", fixture.sample.acme.id}, {"entityType", "gitopsApplications"}});
    EXPECT_EQ(own["data"]["abacRules"], Json::array({rule})) << own;
    // A runtime refuses what no rule allows, so it is told that all may view while no rule is about that.
    const auto told = co_await fixture.ask(
        fixture.sample.prod_token, list,
        {{"accountId", fixture.sample.acme.id}, {"entityType", "gitopsApplications"}});
    CO_ASSERT_EQ(told["data"]["abacRules"].size(), 2U);
    EXPECT_EQ(told["data"]["abacRules"][0], rule);
    EXPECT_EQ(told["data"]["abacRules"][1]["actions"], Json::array({"VIEW"}));
    EXPECT_EQ(told["data"]["abacRules"][1]["teams"].size(), 1U);
    EXPECT_EQ(told["data"]["abacRules"][1]["attributes"], Json::array());
    const auto workflows =
        co_await fixture.ask(fixture.sample.prod_token, list,
                             {{"accountId", fixture.sample.acme.id}, {"entityType", "workflows"}});
    EXPECT_EQ(workflows["data"]["abacRules"], Json::array());
    const auto others = co_await fixture.ask(
        fixture.sample.eve_key, list,
        {{"accountId", fixture.sample.acme.id}, {"entityType", "gitopsApplications"}});
    EXPECT_TRUE(others.contains("errors")) << others;
    const auto removed = co_await fixture.ask(
        fixture.sample.ann_key,
        "mutation($accountId: String!, $id: ID!){removeAbacRule(accountId: $accountId, id: $id)" +
            fields + "}",
        {{"accountId", ""}, {"id", rule["id"]}});
    EXPECT_EQ(removed["data"]["removeAbacRule"], rule) << removed;
  });
}

TEST(RuleFields, ARuleNamesActionsAndTeamsThatThereAre) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const auto admins = co_await team_id(fixture, "admins");
    const auto message = [&](const char* type, Json teams, Json actions) -> Task<std::string> {
      const auto answer = co_await fixture.ask(
          fixture.sample.ann_key,
          "mutation($rule: CreateAbacRuleInput!){createAbacRule(createAbacRuleInput: $rule){id}}",
          {{"rule", {{"entityType", type}, {"teams", teams}, {"actions", actions}}}});
      co_return answer.contains("errors") ? answer["errors"][0]["message"].get<std::string>() : "";
    };
    const Json known = Json::array({admins});
    // Every action that the documentation of Terraform's codefresh_abac_rules lists.
    EXPECT_EQ(
        co_await message("gitopsApplications", known,
                         {"REFRESH", "SYNC", "TERMINATE_SYNC", "VIEW_POD_LOGS", "APP_ROLLBACK"}),
        "");
    EXPECT_EQ(co_await message("clusters", known, {"CREATE", "EXEC_TO_POD"}), "");
    EXPECT_THAT(co_await message("gitopsApplications", known, {"SYNC", "SNYC"}),
                testing::AllOf(testing::HasSubstr("there is no action SNYC; for gitopsApplications "
                                                  "there are VIEW, REFRESH, SYNC"),
                               testing::Not(testing::HasSubstr("PROMOTE_TO"))));
    EXPECT_THAT(co_await message("pipelines", known, {"sync"}),
                testing::AllOf(testing::HasSubstr("SYNC"), testing::HasSubstr("PROMOTE_TO")));
    EXPECT_THAT(co_await message("gitopsApplications", {admins, "admins"}, {"SYNC"}),
                testing::AllOf(
                    testing::HasSubstr("there is no team with the id admins; there are "),
                    testing::HasSubstr("admins (" + admins + ")"), testing::HasSubstr("users (")));
    const auto rules =
        co_await fixture.ask(fixture.sample.ann_key, "{abacRules(accountId: \"\"){id}}");
    EXPECT_EQ(rules["data"]["abacRules"].size(), 2U) << "those that were accepted";
  });
}

TEST(SealingKeyFields, AKeyIsKeptForTheRuntimesOfTheAccount) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const auto key = test::base64_encode("-----BEGIN PRIVATE KEY-----\n");
    const std::string save =
        "mutation saveSealingKey($privateKey: String!){saveSealingKey(privateKey: $privateKey)}";
    const auto saved = co_await fixture.ask(fixture.sample.prod_token, save, {{"privateKey", key}});
    CO_ASSERT_TRUE(!saved.contains("errors")) << saved;
    const auto id = saved["data"]["saveSealingKey"];
    const std::string get = "query getSealingKey($id: String!) { getSealingKey(id: $id) }";
    const auto got = co_await fixture.ask(fixture.sample.prod_token, get, {{"id", id}});
    EXPECT_EQ(got["data"]["getSealingKey"], key) << got;
    const auto user = co_await fixture.ask(fixture.sample.ann_key, get, {{"id", id}});
    EXPECT_EQ(user["errors"][0]["extensions"]["code"], "FORBIDDEN") << user;
    const auto absent = co_await fixture.ask(fixture.sample.prod_token, get, {{"id", "x"}});
    EXPECT_EQ(absent["errors"][0]["extensions"]["code"], "NOT_FOUND") << absent;
    const auto wrong =
        co_await fixture.ask(fixture.sample.prod_token, save, {{"privateKey", "not base64!"}});
    EXPECT_EQ(wrong["errors"][0]["extensions"]["code"], "INVALID_ARGUMENT") << wrong;
    EXPECT_FALSE(fixture.accounts.log.text().contains(key));
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
