#include "control-plane/views/application_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control-plane/views/component_view.hpp"
#include "control-plane/views/git_source_view.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;

const std::string kCommit(40, 'a');

ViewContext context() {
  return {.account = "acme-id", .now = kSeedTime, .rollout_runtimes = {"prod"}};
}

Json shown(const std::string& body, const ViewContext& with = context()) {
  const SeenObject seen(body);
  return appended(
      [&](std::string& out) { append_application(out, seen.event.state, seen.parsed, with); });
}

Json whole(const std::string& body) {
  const SeenObject seen(body);
  return appended([&](std::string& out) {
    append_application(out, seen.event.state, seen.parsed, context(), ApplicationParts::whole);
  });
}

std::vector<std::string> error_codes(const Json& application) {
  std::vector<std::string> codes;
  for (const auto& error : application["errors"]) codes.push_back(error["code"]);
  return codes;
}

TEST(ApplicationView, ResourcesAreListedForOneApplicationAlone) {
  auto application = application_of("shop");
  application["spec"]["project"] = "pay";
  application["status"]["resources"] = {
      {{"kind", "Deployment"},
       {"group", "apps"},
       {"version", "v1"},
       {"namespace", "shop"},
       {"name", "web"},
       {"status", "OutOfSync"},
       {"health", {{"status", "Degraded"}, {"message", "no pods"}}},
       {"requiresPruning", true}},
      {{"kind", "ConfigMap"}, {"version", "v1"}, {"name", "web"}}};
  const auto body = app_event(application);
  EXPECT_EQ(shown(body)["project"], "pay");
  EXPECT_TRUE(shown(body)["resources"].is_null()) << "a list of Applications would be too large";
  const auto resources = whole(body)["resources"];
  EXPECT_EQ(resources[0], (Json{{"group", "apps"},
                                {"version", "v1"},
                                {"kind", "Deployment"},
                                {"namespace", "shop"},
                                {"name", "web"},
                                {"syncStatus", "OUT_OF_SYNC"},
                                {"healthStatus", "DEGRADED"},
                                {"healthMessage", "no pods"},
                                {"hook", false},
                                {"requiresPruning", true}}));
  EXPECT_TRUE(resources[1]["healthStatus"].is_null()) << "Argo CD assesses none of a ConfigMap";
  EXPECT_TRUE(resources[1]["syncStatus"].is_null());
}

TEST(ApplicationView, AnApplicationIsShownAsItIs) {
  auto application = application_of("shop");
  application["metadata"]["labels"] = {{"team", "a"},
                                       {"app.meta.commit-author", "Dana"},
                                       {"app.meta.commit-message", "scale to two"},
                                       {"app.meta.commit-date", "2026-03-04T09:10:00Z"}};
  application["metadata"]["annotations"] = {
      {"codefresh.io/app-group", "web, backend ,"},
      {"codefresh.io/product", "store"},
      {"kubectl.kubernetes.io/last-applied-configuration", "{}"}};
  application["spec"]["syncPolicy"] = {{"automated", {{"prune", true}}}};
  application["status"] = {
      {"sync", {{"status", "OutOfSync"}, {"revision", kCommit}}},
      {"health", {{"status", "Degraded"}, {"message", "no pods"}}},
      {"history", {{{"id", 3}, {"revision", "b"}}, {{"id", 5}, {"revision", kCommit}}}},
      {"sourceType", "Helm"},
      {"resources",
       {{{"kind", "Deployment"}, {"group", "apps"}, {"name", "web"}},
        {{"kind", "Application"},
         {"group", "argoproj.io"},
         {"name", "child"},
         {"namespace", "argocd"}}}},
      {"operationState",
       {{"phase", "Succeeded"},
        {"startedAt", "2026-03-04T09:11:00Z"},
        {"finishedAt", "2026-03-04T09:11:30Z"},
        {"message", "done"},
        {"operation", {{"initiatedBy", {{"username", "dana"}}}}},
        {"syncResult", {{"revision", kCommit}}}}}};
  const auto json = shown(app_event(application));
  EXPECT_EQ(json["metadata"]["name"], "shop");
  EXPECT_EQ(json["metadata"]["account"], "acme-id");
  EXPECT_EQ(json["metadata"]["cluster"], "https://10.0.0.1");
  EXPECT_EQ(json["metadata"]["annotations"].size(), 2U) << "without the copy of the object";
  EXPECT_EQ(json["syncStatus"], "OUT_OF_SYNC");
  EXPECT_EQ(json["healthStatus"], "DEGRADED");
  EXPECT_EQ(json["healthMessage"], "no pods");
  const auto& status = json["status"];
  EXPECT_EQ(status["commitAuthor"], "Dana");
  EXPECT_EQ(status["commitMessage"], "scale to two");
  EXPECT_EQ(status["commitUrl"], "https://git.example/acme/apps/commit/" + kCommit);
  EXPECT_EQ(status["historyId"], 5);
  EXPECT_EQ(status["minHistoryId"], 3);
  EXPECT_EQ(status["syncFinishedAt"], "2026-03-04T09:11:30Z");
  EXPECT_EQ(json["specSource"]["path"], "apps/shop");
  EXPECT_TRUE(json["specSources"].is_null());
  EXPECT_EQ(json["destination"]["namespace"], "shop");
  EXPECT_EQ(json["syncPolicy"], "Automated");
  EXPECT_EQ(json["isHelmApp"], true);
  EXPECT_EQ(json["isGitSource"], false);
  EXPECT_EQ(json["size"], 2);
  EXPECT_EQ(json["operationState"]["initiatedBy"], "dana");
  EXPECT_EQ(json["operationState"]["phase"], "Succeeded");
  EXPECT_EQ(json["relatedGroups"], Json({"web", "backend"}));
  EXPECT_EQ(json["products"][0]["name"], "store");
  EXPECT_TRUE(json["appsRelations"]["parent"].is_null());
  EXPECT_EQ(json["appsRelations"]["children"][0]["name"], "child");
  EXPECT_EQ(json["errors"], Json::array());
}

TEST(ApplicationView, AChildNamesItsParent) {
  auto source = managed_by("apps");
  source["repoURL"] = "https://git.example/acme/apps.git";
  source["commitAuthor"] = "Lee";
  const auto json = shown(app_event(application_of("shop"), source));
  EXPECT_EQ(json["appsRelations"]["parent"]["name"], "apps");
  EXPECT_EQ(json["source"]["appName"], "apps");
  EXPECT_EQ(json["source"]["commitAuthor"], "Lee");
}

TEST(ApplicationView, OfSeveralSourcesTheFirstWithoutRefIsTheMainOne) {
  auto application = application_of("shop");
  application["spec"]["sources"] = {{{"repoURL", "https://git.example/values"}, {"ref", "values"}},
                                    {{"repoURL", "https://charts.example"}, {"chart", "web"}}};
  const auto json = shown(app_event(application));
  EXPECT_EQ(json["isMultiSourced"], true);
  EXPECT_EQ(json["repoURL"], "https://charts.example");
  EXPECT_EQ(json["specSources"].size(), 2U);
  EXPECT_EQ(json["isHelmApp"], true);
}

TEST(ApplicationView, ALongSynchronizationIsAWarning) {
  auto application = application_of("shop");
  application["status"]["operationState"] = {{"phase", "Running"},
                                             {"startedAt", "2026-03-04T08:12:00Z"}};
  EXPECT_THAT(error_codes(shown(app_event(application))), ElementsAre("LONG_SYNC"));
  EXPECT_EQ(shown(app_event(application))["syncStatus"], "SYNCING");
  application["metadata"]["annotations"] = {{"codefresh.io/app-sync-warning-threshold", "90"}};
  EXPECT_THAT(error_codes(shown(app_event(application))), ElementsAre());
  application["metadata"]["annotations"] = {{"codefresh.io/app-sync-warning-threshold", "soon"}};
  EXPECT_THAT(error_codes(shown(app_event(application))), ElementsAre("LONG_SYNC"));
}

TEST(ApplicationView, RolloutsThatNobodyReportsAreAWarning) {
  auto application = application_of("shop");
  application["status"]["resources"] = {{{"kind", "Rollout"}, {"group", "argoproj.io"}}};
  EXPECT_THAT(error_codes(shown(app_event(application))), ElementsAre());
  EXPECT_THAT(error_codes(shown(app_event(application), {.account = "a", .now = kSeedTime})),
              ElementsAre("MISSING_ROLLOUTS_COMPONENT"));
}

TEST(ApplicationView, ReportedErrorsKeepTheirKind) {
  const auto json = shown(app_event(
      application_of("shop"), {},
      {{{"type", "health"}, {"level", "error"}, {"message", "no pods"}, {"lastSeen", "t"}},
       {{"type", "sync"}, {"level", "warning"}, {"message", "orphans"}}}));
  EXPECT_EQ(json["errors"][0]["__typename"], "HealthError");
  EXPECT_EQ(json["errors"][0]["lastSeen"], "t");
  EXPECT_EQ(json["errors"][1]["__typename"], "SyncError");
  EXPECT_EQ(json["errors"][1]["level"], "WARNING");
  EXPECT_FALSE(json["errors"][1]["lastSeen"].get<std::string>().empty());
}

TEST(ApplicationView, WithoutABodyTheRowTellsWhatItCan) {
  SeenObject seen(app_event(application_of("shop")));
  seen.parsed.read(std::nullopt);
  const auto json = appended(
      [&](std::string& out) { append_application(out, seen.event.state, seen.parsed, context()); });
  EXPECT_EQ(json["metadata"]["name"], "shop");
  EXPECT_EQ(json["syncStatus"], "SYNCED");
  EXPECT_EQ(json["syncPolicy"], "Unknown");
  EXPECT_TRUE(json["status"].is_object());
  EXPECT_TRUE(json["specSource"].is_null());
}

TEST(ApplicationView, PagesOfCommitsAreKnownForCommonHosts) {
  EXPECT_EQ(commit_url("git@github.com:acme/apps.git", kCommit),
            "https://github.com/acme/apps/commit/" + kCommit);
  EXPECT_EQ(commit_url("https://user:secret@gitlab.example/acme/apps", kCommit),
            "https://gitlab.example/acme/apps/-/commit/" + kCommit);
  EXPECT_EQ(commit_url("ssh://git@bitbucket.org/acme/apps.git", kCommit),
            "https://bitbucket.org/acme/apps/commits/" + kCommit);
  EXPECT_EQ(commit_url("https://charts.example", "1.2.3"), "");
  EXPECT_EQ(commit_url("oci://registry.example/chart", kCommit), "");
  EXPECT_EQ(commit_url("javascript:alert(1)", kCommit), "");
}

TEST(GitSourceView, PermissionsAndRestrictionsAreJoined) {
  auto application = application_of("team-a");
  application["metadata"]["labels"] = {{"codefresh.io/entity", "git-source"}};
  const SeenObject seen(app_event(application));
  const auto view_with = [&](const GitSourceFacts& facts) {
    return appended([&](std::string& out) {
      append_git_source(out, seen.event.state, seen.parsed, context(), facts);
    });
  };
  const GitSourceFacts::Name name{"prod", "argocd", "team-a"};
  auto json = view_with(
      {.permissions = {{name, R"([{"userId":"u1","read":true,"write":false},{"x":1},7])"}},
       .restricted = {{name, true}}});
  EXPECT_EQ(json["isRestricted"], true);
  EXPECT_EQ(json["permissions"], Json::parse(R"([{"userId":"u1","read":true,"write":false}])"));
  EXPECT_EQ(json["self"]["isGitSource"], true);
  json = view_with({});
  EXPECT_EQ(json["permissions"], Json::array());
  EXPECT_EQ(json["isRestricted"], false);
}

TEST(ComponentView, TheVersionIsThatOfTheLabelOrTheImage) {
  auto workload = object_of("apps/v1", "Deployment", "gitops", "app-proxy");
  workload["spec"]["template"]["spec"]["containers"] = {{{"image", "quay.io/acme/proxy:1.4.2"}}};
  const SeenObject by_image(app_event(workload, managed_by("runtime")));
  const auto json = appended([&](std::string& out) {
    append_component(out, by_image.event.state, by_image.parsed, context());
  });
  EXPECT_EQ(json["version"], "1.4.2");
  EXPECT_EQ(json["metadata"]["name"], "app-proxy");
  EXPECT_TRUE(json["self"]["status"].is_object()) << "the public command line ends without it";
  EXPECT_EQ(json["self"]["status"]["healthStatus"], "HEALTHY");
  workload["metadata"]["labels"] = {{"app.kubernetes.io/version", "2.0.0"}};
  EXPECT_EQ(component_version(SeenObject(app_event(workload)).parsed.live()), "2.0.0");
  workload = object_of("apps/v1", "Deployment", "gitops", "odd");
  EXPECT_EQ(component_version(SeenObject(app_event(workload)).parsed.live()), "");
}

}  // namespace
}  // namespace gitops::control_plane_server
