#include "control-plane/views/object_query.hpp"

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/storage/body_row.hpp"
#include "control-plane/storage/inventory_store.hpp"
#include "control-plane/storage/report_request_store.hpp"
#include "control-plane/storage/retention.hpp"
#include "control-plane/storage/source_report_store.hpp"
#include "control-plane/storage/stale_objects.hpp"
#include "control-plane/views/component_view.hpp"
#include "control-plane/views/git_source_view.hpp"
#include "control-plane/views/image_store.hpp"
#include "control-plane/views/journal_view.hpp"
#include "control-plane/views/manifest_view.hpp"
#include "control-plane/views/promotion_view.hpp"
#include "control-plane/views/release_view.hpp"
#include "control-plane/views/rollout_view.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using store::Engine;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct ObjectQueryContract : testing::TestWithParam<Engine> {
  std::int64_t send(const std::string& body, const std::string& runtime = "prod",
                    std::int64_t account = 1) {
    return seeder.store(db(), account, body, runtime);
  }
  store::Connection& db() { return bed.connection(); }
  std::vector<std::string> names(const ObjectFilter& filter, const PageWindow& window = {}) {
    std::vector<std::string> found;
    for (const auto& row : must(list_objects(db(), 1, filter, window, BodyUse::skip))) {
      found.push_back(row.state.key.name);
    }
    return found;
  }
  StoreBed bed{GetParam()};
  Seeder seeder{GetParam()};
};

TEST_P(ObjectQueryContract, FiltersNarrow) {
  auto shop = application_of("shop");
  shop["metadata"]["labels"] = {{"team", "a"}, {"tier", "web"}};
  shop["status"]["sync"]["status"] = "OutOfSync";
  auto cart = application_of("cart");
  cart["metadata"]["labels"] = {{"team", "b"}};
  cart["spec"]["destination"]["server"] = "https://10.0.0.2";
  auto source = application_of("team-a");
  source["metadata"]["labels"] = {{"codefresh.io/entity", "git-source"}};
  source["metadata"]["namespace"] = "gitops";
  source["status"]["health"]["status"] = "Degraded";
  send(app_event(shop));
  send(app_event(cart), "stage");
  send(app_event(source));
  EXPECT_THAT(names({}), ElementsAre("cart", "shop", "team-a"));
  EXPECT_THAT(names({.runtimes = {"stage", "none"}}), ElementsAre("cart"));
  EXPECT_THAT(names({.names = {"shop", "team-a"}}), ElementsAre("shop", "team-a"));
  EXPECT_THAT(names({.name_part = "a"}), ElementsAre("cart", "team-a"));
  EXPECT_THAT(names({.namespaces = {"gitops"}}), ElementsAre("team-a"));
  EXPECT_THAT(names({.destinations = {"https://10.0.0.2"}}), ElementsAre("cart"));
  EXPECT_THAT(names({.syncs = {SyncStatus::out_of_sync}}), ElementsAre("shop"));
  EXPECT_THAT(names({.healths = {HealthStatus::degraded, HealthStatus::missing}}),
              ElementsAre("team-a"));
  EXPECT_THAT(names({.entities = {"git-source"}}), ElementsAre("team-a"));
  EXPECT_THAT(names({.other_entities = {"git-source"}}), ElementsAre("cart", "shop"));
  EXPECT_THAT(names({.labels = {"team=a", "team=c"}}), ElementsAre("shop"));
  EXPECT_THAT(names({.labels = {"team"}}), ElementsAre("cart", "shop"));
  EXPECT_THAT(names({.labels = {"tea"}}), IsEmpty());
  EXPECT_THAT(names({.groups = {"apps"}}), IsEmpty());
  EXPECT_THAT(names({.origin = Origin::resource}), IsEmpty());
  EXPECT_THAT(names({.runtimes = {"prod"}, .labels = {"team=b"}}), IsEmpty());
  // Conditions that the index has, beside one that it does not have.
  EXPECT_THAT(names({.syncs = {SyncStatus::out_of_sync}, .labels = {"team"}}), ElementsAre("shop"));
  EXPECT_THAT(names({.versions = {"v1alpha1"},
                     .healths = {HealthStatus::degraded, HealthStatus::healthy},
                     .other_entities = {"git-source"}}),
              ElementsAre("cart", "shop"));
  EXPECT_THAT(names({.versions = {"v1"}}), IsEmpty());
}

TEST_P(ObjectQueryContract, SeparatorsInValuesMatchNothing) {
  send(app_event(application_of("shop")));
  EXPECT_THAT(names({.names = {"x\nshop"}}), IsEmpty());
  EXPECT_THAT(names({.names = {"shop'"}}), IsEmpty());
  EXPECT_THAT(names({.names = {std::string("shop\0", 5)}}), IsEmpty());
  EXPECT_THAT(names({.name_part = "%"}), IsEmpty());
  EXPECT_THAT(names({.name_part = "SHOP"}), IsEmpty());
}

TEST_P(ObjectQueryContract, PagesGoBothWays) {
  for (const auto* name : {"c", "a", "d", "b"}) send(app_event(application_of(name)));
  send(app_event(application_of("b")), "stage");
  std::vector<std::string> forward;
  PageWindow window{.limit = 2};
  while (true) {
    const auto rows = must(list_objects(db(), 1, {}, window, BodyUse::skip));
    if (rows.empty()) break;
    for (const auto& row : rows) forward.push_back(row.state.key.name);
    window.from = sort_key_of(rows.back().state);
  }
  EXPECT_THAT(forward, ElementsAre("a", "b", "b", "c", "d"));
  EXPECT_THAT(names({}, {.is_backward = true, .limit = 2}), ElementsAre("d", "c"));
}

TEST_P(ObjectQueryContract, PagesOfNamesGoBothWays) {
  for (const auto* name : {"a", "b", "c", "d"}) send(app_event(application_of(name)));
  send(app_event(application_of("b")), "stage");
  const ObjectFilter some{.names = {"d", "b"}};
  EXPECT_THAT(names(some), ElementsAre("b", "b", "d"));
  EXPECT_THAT(names(some, {.is_backward = true}), ElementsAre("d", "b", "b"));
  EXPECT_THAT(names(some, {.from = SortKey{.numbers = {-1}, .text = "a"}}),
              ElementsAre("b", "b", "d"));
  EXPECT_THAT(names(some, {.from = SortKey{.numbers = {-1}, .text = "c"}}), ElementsAre("d"));
  EXPECT_THAT(names(some, {.from = SortKey{.numbers = {-1}, .text = "c"}, .is_backward = true}),
              ElementsAre("b", "b"));
  EXPECT_THAT(names(some, {.from = SortKey{.numbers = {-1}, .text = "e"}}), IsEmpty());
}

TEST_P(ObjectQueryContract, AccountsAreApart) {
  const auto theirs = send(app_event(application_of("shop")), "prod", 2);
  EXPECT_THAT(names({}), IsEmpty());
  EXPECT_FALSE(must(find_object(db(), 1, {.name = "shop"}, BodyUse::read)));
  EXPECT_FALSE(must(find_object_by_uid(db(), 1, "Application", "uid-shop", BodyUse::read)));
  EXPECT_TRUE(must(find_object(db(), 2, {.name = "shop"}, BodyUse::read)));
  EXPECT_EQ(read_body(db(), 1, theirs).error().code, ErrorCode::not_found);
  EXPECT_TRUE(read_body(db(), 2, theirs));
}

TEST_P(ObjectQueryContract, DeletedObjectsAreListedAsInactiveOnly) {
  const auto application = application_of("shop");
  send(app_event(application));
  send(app_event(application, {{"actualManifest", ""}}));
  EXPECT_THAT(names({}), IsEmpty());
  EXPECT_THAT(names({.is_inactive = true}), ElementsAre("shop"));
  EXPECT_FALSE(must(find_object(db(), 1, {.name = "shop"}, BodyUse::skip)));
  EXPECT_TRUE(must(find_object_by_uid(db(), 1, "Application", "uid-shop", BodyUse::read)));
}

TEST_P(ObjectQueryContract, BodiesComeWithTheirRows) {
  send(app_event(application_of("shop")));
  const auto row = must(find_object(db(), 1, {.runtime = "prod", .name = "shop"}, BodyUse::read));
  ASSERT_TRUE(row && row->body);
  ParsedBody body;
  body.read(row->body);
  EXPECT_EQ(body.live()["spec"]["source"]["path"].text(), "apps/shop");
  EXPECT_EQ(body.source()["syncStatus"].text(), "Synced");
  EXPECT_FALSE(must(find_object(db(), 1, {.name = "shop"}, BodyUse::skip))->body);
  EXPECT_FALSE(must(find_object(db(), 1, {.runtime = "stage", .name = "shop"}, BodyUse::skip)));
}

TEST_P(ObjectQueryContract, ChildrenAreThoseOfTheirManager) {
  for (const auto* kind : {"Deployment", "ConfigMap", "Rollout"}) {
    send(app_event(object_of("v1", kind, "shop", std::string("x-") + kind), managed_by("shop")));
  }
  send(app_event(object_of("v1", "Deployment", "shop", "other"), managed_by("cart")));
  const auto kinds = [&](Children children) {
    children.runtime = "prod";
    children.manager_namespace = "argocd";
    children.manager_name = "shop";
    std::vector<std::string> found;
    for (const auto& row : must(list_children(db(), 1, children, BodyUse::read))) {
      EXPECT_TRUE(row.body);
      found.push_back(row.state.key.kind);
    }
    return found;
  };
  EXPECT_THAT(kinds({}), ElementsAre("ConfigMap", "Deployment", "Rollout"));
  EXPECT_THAT(kinds({.kinds = {"Rollout", "Deployment"}}), ElementsAre("Deployment", "Rollout"));
  EXPECT_THAT(kinds({.manager_uid = "uid-other"}), IsEmpty());
  EXPECT_THAT(kinds({.limit = 1}), ElementsAre("ConfigMap"));
}

TEST_P(ObjectQueryContract, ASliceSkipsWhatItsConditionRefuses) {
  for (int i = 0; i < 9; ++i) send(app_event(application_of("n" + std::to_string(i))));
  ObjectList list{.window = {.limit = 2}};
  list.accepts = [](const ObjectState& state, const ParsedBody& body) {
    return body.live().is_object() && (state.key.name.back() - '0') % 3 == 0;
  };
  list.append = [](std::string& out, const ObjectState& state, const ParsedBody&) {
    out += "{\"name\":\"" + state.key.name + "\"}";
  };
  const auto slice = Json::parse(must(object_slice(db(), 1, list)));
  ASSERT_EQ(slice["edges"].size(), 2U);
  EXPECT_EQ(slice["edges"][1]["node"]["name"], "n3");
  EXPECT_EQ(slice["pageInfo"]["hasNextPage"], true);
}

TEST_P(ObjectQueryContract, APageAfterManyRefusedRowsIsNotTheLast) {
  for (int i = 0; i < 9; ++i) send(app_event(application_of("n" + std::to_string(i))));
  ObjectList list{.window = {.limit = 2}, .max_read = 4};
  list.accepts = [](const ObjectState& state, const ParsedBody&) { return state.key.name == "n6"; };
  list.append = [](std::string& out, const ObjectState& state, const ParsedBody&) {
    out += "{\"name\":\"" + state.key.name + "\"}";
  };
  std::vector<std::string> found;
  bool has_next = true;
  for (int page = 0; page < 9 && has_next; ++page) {
    const auto slice = Json::parse(must(object_slice(db(), 1, list)));
    for (const auto& edge : slice["edges"]) found.push_back(edge["node"]["name"]);
    has_next = slice["pageInfo"]["hasNextPage"].get<bool>();
    if (!has_next) break;
    const auto next = page_window({.after = slice["pageInfo"]["endCursor"], .first = 2}, 1);
    ASSERT_TRUE(next) << next.error().message;
    list.window = *next;
  }
  EXPECT_FALSE(has_next);
  EXPECT_THAT(found, ElementsAre("n6"));
}

TEST_P(ObjectQueryContract, RuntimesWithAReporterOfRolloutsAreKnown) {
  send(app_event(application_of("shop")), "stage");
  send(resource_event(object_of("argoproj.io/v1alpha1", "Rollout", "shop", "web")), "prod");
  EXPECT_THAT(must(runtimes_with_resource_reporter(db(), 1)), ElementsAre("prod"));
  EXPECT_THAT(must(runtimes_with_resource_reporter(db(), 2)), IsEmpty());
}

TEST_P(ObjectQueryContract, GitSourcesAreJoinedWithTheirFacts) {
  constexpr store::Statement kAddPermission{
      .name = "test.add_permission",
      .sql =
          "INSERT INTO git_source_permission (account, runtime, source_namespace, name, "
          "permissions, updated_at) VALUES ($1, 'prod', 'argocd', 'team-a', '[]', 1)"};
  must(db().run(kAddPermission, {1}));
  must(db().run(kAddPermission, {2}));
  send(app_event(object_of("csdp.codefresh.io/v1", "RestrictedGitSource", "argocd", "team-a"),
                 managed_by("runtime")));
  const auto facts = must(read_git_source_facts(db(), 1));
  EXPECT_EQ(facts.permissions.size(), 1U);
  EXPECT_TRUE(facts.restricted.contains({"prod", "argocd", "team-a"}));
}

TEST_P(ObjectQueryContract, ComponentsAreTheWorkloadsOfTheRuntime) {
  auto runtime = application_of("runtime");
  runtime["metadata"]["labels"] = {{"codefresh.io/entity", "runtime"}};
  send(app_event(runtime));
  send(app_event(object_of("apps/v1", "Deployment", "gitops", "proxy"), managed_by("runtime")));
  send(app_event(object_of("apps/v1", "StatefulSet", "gitops", "argo"), managed_by("runtime")));
  send(app_event(object_of("v1", "ConfigMap", "gitops", "settings"), managed_by("runtime")));
  send(app_event(object_of("apps/v1", "Deployment", "shop", "web"), managed_by("shop")));
  const auto components = [&](std::string_view name) {
    std::vector<std::string> found;
    const auto slice = Json::parse(must(component_slice(db(), 1, name, {}, {.account = "a"})));
    for (const auto& edge : slice["edges"]) found.push_back(edge["node"]["metadata"]["name"]);
    return found;
  };
  EXPECT_THAT(components("prod"), ElementsAre("argo", "proxy"));
  EXPECT_THAT(components(""), ElementsAre("argo", "proxy"));
  EXPECT_THAT(components("stage"), IsEmpty());
}

TEST_P(ObjectQueryContract, AStepIsKnownOnceItsCommitIsDeployed) {
  const std::string commit(40, 'b');
  auto application = application_of("shop");
  application["status"]["history"] = {{{"id", 1}, {"revision", std::string(40, 'a')}}};
  auto rollout = object_of("argoproj.io/v1alpha1", "Rollout", "shop", "web");
  rollout["spec"]["strategy"]["canary"]["steps"] = {{{"setWeight", 20}},
                                                    {{"pause", Json::object()}}};
  send(app_event(application));
  send(app_event(rollout, managed_by("shop")));
  StepQuestion question{.runtime = "prod",
                        .application_namespace = "not relevant",
                        .application = "shop",
                        .commit = commit,
                        .rollout = "web",
                        .step = 0};
  EXPECT_FALSE(must(find_step_status(db(), 1, question))) << "not deployed yet";
  application["status"]["history"] = {{{"id", 1}, {"revision", std::string(40, 'a')}},
                                      {{"id", 2}, {"revision", commit}}};
  send(app_event(application));
  EXPECT_FALSE(must(find_step_status(db(), 1, question))) << "the controller has not seen it";
  // The reporter of resources has the Rollout's whole state.
  rollout["status"] = {{"phase", "Progressing"},
                       {"currentStepIndex", 1},
                       {"currentPodHash", "new"},
                       {"stableRS", "old"}};
  send(resource_event(rollout));
  EXPECT_EQ(must(find_step_status(db(), 1, question)), StepStatus::passed);
  question.step = 1;
  question.commit = commit.substr(0, 8);
  EXPECT_EQ(must(find_step_status(db(), 1, question)), StepStatus::active);
  question.commit = std::string(40, 'a');
  EXPECT_EQ(must(find_step_status(db(), 1, question)), StepStatus::terminated);
  question.rollout = "other";
  question.commit = commit;
  EXPECT_FALSE(must(find_step_status(db(), 1, question)));
  EXPECT_FALSE(must(find_step_status(db(), 2, question)));
}

TEST_P(ObjectQueryContract, ATemplateIsFoundByTheLabelsOfItsApplication) {
  auto application = application_of("shop");
  application["metadata"]["labels"] = {{"team", "a"}};
  send(app_event(application));
  auto rules = object_of("codefresh.io/v1beta1", "PromotionTemplate", "gitops", "charts");
  rules["spec"] = {{"applicationSourceSelector", {{"matchLabels", {{"team", "a"}}}}},
                   {"versionSource", {{"file", "Chart.yaml"}, {"jsonPath", "$.version"}}}};
  send(app_event(rules, managed_by("configuration")));
  EXPECT_TRUE(must(find_promotion_template(db(), 1, ObjectName{.name = "shop"})));
  EXPECT_FALSE(must(find_promotion_template(db(), 1, ObjectName{.name = "cart"})));
  EXPECT_FALSE(must(find_promotion_template(db(), 1, Labels{{"team", "b"}})));
  EXPECT_FALSE(must(find_promotion_template(db(), 2, Labels{{"team", "a"}})));
}

// Pages of large accounts read the rows that they show, and find them in one index.
TEST_P(ObjectQueryContract, AListIsFoundInAnIndexAlone) {
  const auto statements = object_statements();
  const auto list = std::ranges::find(statements, "views.list", &store::Statement::name);
  ASSERT_NE(list, statements.end());
  const std::string sql(list->text(GetParam()));
  std::string plan;
  const auto add_plan = [&](const std::string& text, std::size_t column) {
    const auto rows = must(db().run({.name = text, .sql = text}));
    for (std::size_t row = 0; row < rows.size(); ++row) plan += rows.string(row, column) + "\n";
  };
  if (GetParam() == Engine::sqlite) {
    add_plan("EXPLAIN QUERY PLAN " + sql, 3);
    EXPECT_THAT(plan, HasSubstr("SEARCH o USING COVERING INDEX object_name"));
    EXPECT_THAT(plan, HasSubstr("SEARCH o USING INTEGER PRIMARY KEY"));
    return;
  }
  ASSERT_TRUE(
      db().run_script("SET enable_seqscan = off; SET enable_bitmapscan = off; "
                      "SET plan_cache_mode = force_generic_plan; PREPARE t AS " +
                      sql));
  add_plan(
      "EXPLAIN EXECUTE t(1, 'Application', 0, 0, '', '', '', '', '', 4, 0, 0, '', '', '', 0, 50, "
      "'z')",
      0);
  EXPECT_THAT(plan, HasSubstr("Index Only Scan using object_name"));
}

TEST_P(ObjectQueryContract, EveryStatementCanBePrepared) {
  const std::vector<std::span<const store::Statement>> all{
      object_statements(),        git_source_statements(), image_statements(),
      release_statements(),       body_statements(),       retention_statements(),
      source_report_statements(), inventory_statements(),  stale_object_statements(),
      journal_statements(),       manifest_statements(),   report_request_statements()};
  // A connection knows a statement by the address of its name.
  std::deque<std::string> texts;
  for (const auto& statements : all) {
    for (const auto& statement : statements) {
      const std::string sql(statement.text(GetParam()));
      if (GetParam() == Engine::postgres) {
        const auto prepared = db().run_script("PREPARE t AS " + sql + "; DEALLOCATE t");
        EXPECT_TRUE(prepared) << statement.name << ": " << prepared.error().message;
        continue;
      }
      // Explaining a statement prepares it without running it.
      const auto& text = texts.emplace_back("EXPLAIN " + sql);
      const auto explained = db().run({.name = text, .sql = text});
      EXPECT_TRUE(explained) << statement.name << ": " << explained.error().message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, ObjectQueryContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::control_plane_server
