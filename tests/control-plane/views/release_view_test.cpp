#include "control-plane/views/release_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/views/image_store.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using store::Engine;
using testing::ElementsAre;
using testing::IsEmpty;

// An Application whose newest deployment is `id`, with these images.
Json deployed(const std::string& name, int id, const Json& images, const char* health = "Healthy") {
  const auto revision = std::string(39, 'a') + std::to_string(id);
  const auto minute = std::to_string(10 + id);
  auto application = application_of(name);
  application["status"]["sync"]["revision"] = revision;
  application["status"]["health"]["status"] = health;
  application["status"]["history"] = Json::array();
  for (int entry = 1; entry <= id; ++entry) {
    application["status"]["history"].push_back(
        {{"id", entry},
         {"revision", std::string(39, 'a') + std::to_string(entry)},
         {"deployStartedAt", "2026-03-04T09:" + std::to_string(10 + entry) + ":00Z"},
         {"deployedAt", "2026-03-04T09:" + std::to_string(10 + entry) + ":30Z"}});
  }
  application["status"]["operationState"] = {{"phase", "Succeeded"},
                                             {"startedAt", "2026-03-04T09:" + minute + ":00Z"},
                                             {"syncResult", {{"revision", revision}}}};
  application["metadata"]["labels"] = {{"app.meta.commit-author", "Dana"},
                                       {"app.meta.commit-message", "release " + minute}};
  application["status"]["summary"]["images"] = images;
  return application;
}

struct ReleaseContract : testing::TestWithParam<Engine> {
  void send(const std::string& body, const std::string& runtime = "prod") {
    seeder.store(db(), 1, body, runtime);
  }
  store::Connection& db() { return bed.connection(); }
  Json slice(const ReleaseList& list = {}) {
    return Json::parse(must(release_slice(db(), 1, list, {.account = "acme-id"})));
  }
  std::vector<int> ids(const ReleaseList& list = {}) {
    std::vector<int> found;
    for (const auto& edge : slice(list)["edges"]) found.push_back(edge["node"]["historyId"]);
    return found;
  }
  StoreBed bed{GetParam()};
  Seeder seeder{GetParam()};
};

TEST_P(ReleaseContract, TheNewestReleaseIsCurrentAndComparedWithTheOneBefore) {
  auto workload = object_of("apps/v1", "Deployment", "shop", "frontend");
  workload["spec"]["template"]["spec"]["containers"] = {{{"image", "registry.example/web:2"}}};
  workload["status"] = {{"replicas", 3}, {"availableReplicas", 2}};
  send(app_event(workload, managed_by("shop")));
  send(app_event(deployed("shop", 1, {"registry.example/web:1", "registry.example/db:5"})));
  send(app_event(
      deployed("shop", 2, {"registry.example/web:2", "registry.example/db:5"}, "Degraded")));
  const auto json = slice();
  ASSERT_EQ(json["edges"].size(), 2U);
  const auto& newest = json["edges"][0]["node"];
  EXPECT_EQ(newest["historyId"], 2);
  EXPECT_EQ(newest["current"], true);
  EXPECT_EQ(newest["applicationMetadata"]["name"], "shop");
  EXPECT_EQ(newest["application"]["status"]["healthStatus"], "DEGRADED");
  EXPECT_EQ(newest["application"]["status"]["commitAuthor"], "Dana");
  EXPECT_EQ(newest["application"]["status"]["commitMessage"], "release 12");
  EXPECT_EQ(newest["operationState"]["phase"], "Succeeded");
  ASSERT_EQ(newest["transition"]["services"].size(), 1U) << "the database did not change";
  const auto& service = newest["transition"]["services"][0];
  EXPECT_EQ(service["name"], "frontend");
  EXPECT_EQ(service["from"]["images"][0]["tag"], "1");
  EXPECT_EQ(service["to"]["images"][0]["tag"], "2");
  EXPECT_EQ(service["to"]["replicas"], 3);
  EXPECT_EQ(service["to"]["availableReplicas"], 2);
  EXPECT_FALSE(service["from"].contains("replicas"));
  ASSERT_EQ(newest["toState"]["services"].size(), 2U);
  EXPECT_EQ(newest["toState"]["services"][0]["name"], "db");
  const auto& first = json["edges"][1]["node"];
  EXPECT_EQ(first["current"], false);
  EXPECT_EQ(first["application"]["status"]["healthStatus"], "HEALTHY");
  EXPECT_TRUE(first["fromState"].is_null());
  EXPECT_TRUE(first["operationState"].is_null());
  EXPECT_EQ(first["transition"]["services"].size(), 2U);
  EXPECT_TRUE(first["transition"]["services"][0]["from"].is_null());
}

TEST_P(ReleaseContract, RolloutsOfTheCurrentReleaseAreShown) {
  auto rollout = object_of("argoproj.io/v1alpha1", "Rollout", "shop", "web");
  rollout["spec"]["strategy"]["canary"]["steps"] = {{{"setWeight", 20}}, {{"setWeight", 50}}};
  rollout["status"] = {{"phase", "Progressing"}, {"currentStepIndex", 1}};
  send(app_event(rollout, managed_by("shop")));
  send(app_event(deployed("shop", 1, Json::array())));
  const auto node = slice()["edges"][0]["node"];
  ASSERT_EQ(node["toState"]["rollouts"].size(), 1U);
  EXPECT_EQ(node["toState"]["rollouts"][0]["phase"], "Progressing");
  EXPECT_EQ(node["transition"]["rollouts"][0]["to"]["currentStepIndex"], 1);
}

TEST_P(ReleaseContract, FiltersAndOrdersNarrow) {
  for (int id = 1; id <= 3; ++id) {
    send(app_event(deployed("shop", id, Json::array())));
    send(app_event(deployed("cart", id, Json::array())), "stage");
  }
  EXPECT_EQ(ids().size(), 6U);
  EXPECT_THAT(ids({.filter = {.names = {"shop"}}}), ElementsAre(3, 2, 1));
  EXPECT_THAT(ids({.filter = {.runtimes = {"stage"}, .history_id = 2}}), ElementsAre(2));
  EXPECT_THAT(ids({.filter = {.runtimes = {"prod"}, .names = {"cart"}}}), IsEmpty());
  EXPECT_THAT(ids({.filter = {.names = {"shop"},
                              .started_from = time_of("2026-03-04T09:12:00Z"),
                              .started_to = time_of("2026-03-04T09:12:59Z")}}),
              ElementsAre(2));
  for (const auto order : {ReleaseOrder::created, ReleaseOrder::history}) {
    EXPECT_THAT(ids({.filter = {.names = {"shop"}}, .order = order, .is_descending = false}),
                ElementsAre(1, 2, 3));
  }
  for (const auto order : {ReleaseOrder::health, ReleaseOrder::sync}) {
    EXPECT_EQ(ids({.order = order}).size(), 6U);
  }
}

TEST_P(ReleaseContract, PagesFollowEachOther) {
  for (int id = 1; id <= 5; ++id) send(app_event(deployed("shop", id, Json::array())));
  for (const auto& names : {std::vector<std::string>{"shop"}, std::vector<std::string>{}}) {
    ReleaseList list{.filter = {.names = names}, .window = {.limit = 2}};
    std::vector<int> found;
    for (int page = 0; page < 3; ++page) {
      const auto json = slice(list);
      for (const auto& edge : json["edges"]) found.push_back(edge["node"]["historyId"]);
      EXPECT_EQ(json["pageInfo"]["hasNextPage"], page < 2);
      const auto window = page_window({.after = json["pageInfo"]["endCursor"], .first = 2}, 3);
      ASSERT_TRUE(window);
      list.window = *window;
    }
    EXPECT_THAT(found, ElementsAre(5, 4, 3, 2, 1));
  }
}

TEST_P(ReleaseContract, WhatBuildsToldIsJoinedByTheImages) {
  const std::string image = "registry.example/web:2";
  must(put_image_binary(db(), 1,
                        Json{{"id", "sha256:1"},
                             {"created", "t"},
                             {"imageName", image},
                             {"author", {{"username", "lee"}}},
                             {"workflowName", "build-1"},
                             {"workflowUrl", "https://ci.example/1"}}
                            .dump(),
                        1));
  const auto annotate = [&](const Json& annotation) {
    auto full = annotation;
    full["entityType"] = "image";
    full["logicEntityId"] = {{"id", image}};
    must(save_annotation(db(), 1, full.dump(), 1));
  };
  send(app_event(deployed("shop", 1, {image})));
  const auto application = [&] { return slice()["edges"][0]["node"]["application"]; };
  EXPECT_EQ(application()["committers"][0]["userName"], "lee") << "the author of the image";
  annotate({{"key", "SHOP-1"},
            {"type", "issue"},
            {"issueValue", {{"url", "u"}, {"title", "t"}, {"status", "Done"}}}});
  annotate({{"key", "#github#acme/web#7"},
            {"type", "pr"},
            {"pullRequestValue",
             {{"url", "u"},
              {"title", "t"},
              {"committers", {{{"userName", "dana"}, {"avatar", "a"}}}},
              {"commits", {{{"sha", "c0ffee"}, {"userName", "dana"}, {"message", "m"}}}}}}});
  const auto joined = application();
  EXPECT_EQ(joined["issues"][0]["key"], "SHOP-1");
  EXPECT_EQ(Json::parse(joined["issues"][0]["value"].get<std::string>())["status"], "Done");
  EXPECT_EQ(joined["prs"][0]["key"], "#github#acme/web#7");
  ASSERT_EQ(joined["committers"].size(), 1U);
  EXPECT_EQ(joined["committers"][0]["userName"], "dana");
  EXPECT_EQ(joined["committers"][0]["commits"][0]["sha"], "c0ffee");
  EXPECT_EQ(joined["builds"][0]["workflowName"], "build-1");
  EXPECT_EQ(slice()["edges"][0]["node"]["toState"]["services"][0]["images"][0]["binaryId"],
            "sha256:1");
  EXPECT_THAT(ids({.filter = {.issues = {"SHOP-1", "SHOP-2"}}}), ElementsAre(1));
  EXPECT_THAT(ids({.filter = {.issues = {"SHOP-2"}}}), IsEmpty());
  EXPECT_THAT(ids({.filter = {.has_issues_only = true}}), ElementsAre(1));
  EXPECT_THAT(ids({.filter = {.committers = {"dana"}}}), ElementsAre(1));
  EXPECT_THAT(ids({.filter = {.pull_requests = {"#other"}}}), IsEmpty());
  EXPECT_THAT(ids({.filter = {.group = "web"}}), IsEmpty());
}

TEST_P(ReleaseContract, OtherAccountsSeeNothing) {
  send(app_event(deployed("shop", 1, Json::array())));
  const auto theirs =
      Json::parse(must(release_slice(db(), 2, {.filter = {.names = {"shop"}}}, {})));
  EXPECT_EQ(theirs["edges"], Json::array());
  EXPECT_EQ(Json::parse(must(release_slice(db(), 2, {}, {})))["edges"], Json::array());
}

// Argo CD counts the deployments of the new Application from 0 again.
TEST_P(ReleaseContract, AnApplicationThatWasCreatedAgainHasItsOwnReleases) {
  auto former = deployed("shop", 1, {"shop:1"}, "Degraded");
  former["status"]["history"].back()["initiatedBy"] = {{"username", "dana"}};
  send(app_event(former));
  send(app_event(deployed("shop", 2, {"shop:2"})));
  send(app_event(former, {{"actualManifest", ""}}));
  auto now = deployed("shop", 1, {"shop:9"});
  now["metadata"]["uid"] = "uid-shop-2";
  now["status"]["history"][0]["deployStartedAt"] = "2026-03-05T09:00:00Z";
  now["status"]["history"][0]["deployedAt"] = "2026-03-05T09:00:30Z";
  send(app_event(now));
  std::vector<std::pair<int, bool>> current;
  const auto list = slice();
  for (const auto& edge : list["edges"]) {
    current.emplace_back(edge["node"]["historyId"], edge["node"]["current"]);
  }
  EXPECT_THAT(current, ElementsAre(std::pair(1, true), std::pair(2, false)));
  constexpr store::Statement kRow{
      .name = "test.release_row",
      .sql = "SELECT initiator, was_degraded FROM app_release WHERE history_id = 1"};
  const auto row = must(db().run(kRow));
  EXPECT_EQ(row.text(0, 0), "") << "nobody asked for the new one";
  EXPECT_EQ(row.number(0, 1), 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, ReleaseContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::control_plane_server
