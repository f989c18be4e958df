#include "event-reporter/report/reporter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event-reporter/report/play_reporter.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

TEST(Reporter, ReportsAnApplicationFirstAndThenItsResources) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    fixture.put({.resources = 3});
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_EQ(fixture.events()[0], "web");
    EXPECT_THAT(fixture.events("ConfigMap"), UnorderedElementsAre("c-0", "c-1", "c-2"));
    const auto& first = fixture.platform.reports()[1];
    EXPECT_EQ(first.source("commitMessage"), "commit r1");
    EXPECT_EQ(first.source("trackingMethod"), "annotation");
    EXPECT_THAT(first.event_id, HasSubstr("uid-1/"));
    EXPECT_EQ(fixture.not_ready("applications"), "");
    EXPECT_EQ(fixture.not_ready("argocd"), "");
    EXPECT_EQ(fixture.not_ready("platform"), "");
  });
}

TEST(Reporter, ReadsArgoCdTwiceWhateverTheNumberOfResources) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    std::size_t expected = 0;
    for (const auto& [name, count] : {std::pair{"small", 5}, std::pair{"big", 100}}) {
      fixture.put({.name = name, .resources = count});
      expected += static_cast<std::size_t>(count) + 1;
      CO_ASSERT_TRUE(co_await fixture.wait_for_events(expected));
    }
    EXPECT_EQ(fixture.argocd.reads().tree, 2U);
    EXPECT_EQ(fixture.argocd.reads().managed, 2U);
    EXPECT_EQ(fixture.argocd.reads().revisions, 1U);  // both are at the same commit
    fixture.put({.name = "small", .revision = "r2", .content = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(expected + 6));
    EXPECT_EQ(fixture.argocd.reads().tree, 3U);
    EXPECT_EQ(fixture.argocd.reads().managed, 3U);
    EXPECT_EQ(fixture.argocd.reads().revisions, 2U);
  });
}

TEST(Reporter, ARefreshIsNeitherReadNorReported) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app;
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(6));
    const auto reads = fixture.argocd.reads().total();
    auto refreshed = app.application();
    for (const auto* time : {"2026-03-04T09:03:00Z", "2026-03-04T09:06:00Z"}) {
      refreshed["status"]["reconciledAt"] = time;
      fixture.kube.put(k8s::resources::kApplications, refreshed);
    }
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.metric("gitops_event_reporter_unchanged_total") == 2; },
        "two unchanged applications"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.reports().size(), 6U);
    EXPECT_EQ(fixture.argocd.reads().total(), reads);
  });
}

TEST(Reporter, PostsOnlyWhatChanged) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 100});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(101));
    fixture.put({.revision = "r2", .resources = 100, .other_content = {{42, 7}}});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(103));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 101), ElementsAre("web", "c-42"));
    EXPECT_EQ(fixture.platform.reports()[102].source("revision"), "r2");
    EXPECT_EQ(fixture.platform.reports()[102].source("commitMessage"), "commit r2");
  });
}

TEST(Reporter, AResourceThatIsRemovedIsReportedAsGone) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 3});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    fixture.put({.revision = "r2", .resources = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(6));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 4), ElementsAre("web", "c-2 gone"));
    EXPECT_EQ(fixture.platform.reports()[5].source("desiredManifest"), "");
  });
}

TEST(Reporter, ADeletedApplicationIsReportedWithItsResources) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 2};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    const auto reads = fixture.argocd.reads().total();
    fixture.remove(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(6));
    EXPECT_EQ(fixture.events("", 3)[0], "web gone");
    EXPECT_THAT(fixture.events("ConfigMap", 3), UnorderedElementsAre("c-0 gone", "c-1 gone"));
    EXPECT_EQ(fixture.argocd.reads().total(), reads);
  });
}

TEST(Reporter, AnApplicationThatVanishedDuringACutIsReportedByName) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 1};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    fixture.kube.cut_watches();
    fixture.remove(app);
    fixture.kube.compact();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_THAT(fixture.events("", 2), ElementsAre("web gone", "c-0 gone"));
  });
}

TEST(Reporter, AnApplicationRecreatedIsReportedGoneAndThenNew) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    fixture.remove({});
    fixture.put({.uid = "uid-2", .resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(6));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 2), ElementsAre("web gone", "c-0 gone", "web", "c-0"));
    EXPECT_EQ(fixture.platform.reports()[5].source("appUID"), "uid-2");
  });
}

TEST(Reporter, NothingIsLostWhenTheQueueIsFull) {
  auto options = ReporterFixture::fast_options();
  options.reporter.queue.capacity = 2;
  options.reporter.queue.workers = 1;
  options.reporter.queue.dirty.bytes = 3000;  // most texts are read from the API server again
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    for (int i = 0; i < 30; ++i) fixture.put({.name = "app-" + std::to_string(i), .resources = 1});
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(60));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("Application"), SizeIs(30));
    EXPECT_EQ(fixture.platform.reports().size(), 60U);
  });
}

TEST(Reporter, TheNewestStateOfAnApplicationIsItsLastReport) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    for (int content = 1; content <= 20; ++content) {
      fixture.put({.revision = "r1",
                   .resources = 1,
                   .content = content,
                   .metadata = {{"labels", {{"content", std::to_string(content)}}}}});
    }
    const auto* last = co_await fixture.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.kind() == "ConfigMap" && report.object["data"]["content"] == "20";
        },
        deadline_after(std::chrono::seconds(5)));
    CO_ASSERT_TRUE(last != nullptr);
    EXPECT_TRUE(co_await fixture.is_quiet());
    int before = 0;
    for (const auto* report : fixture.platform.find("Application", "web")) {
      const int content =
          std::stoi(report->object["metadata"]["labels"]["content"].get<std::string>());
      EXPECT_GT(content, before);
      before = content;
    }
    EXPECT_EQ(before, 20);
  });
}

TEST(Reporter, ResourcesGoWithTheNewestStateAlone) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    // So long that the second state comes before the next attempt with the first one.
    fixture.platform.fail_next(1, 503, std::chrono::seconds(2));
    fixture.put({.revision = "r2", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.not_ready("platform").empty(); },
                                             "platform to be not ready"));
    fixture.put({.revision = "r3", .resources = 1, .content = 3});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 2), ElementsAre("web", "web", "c-0"));
    const auto& last = fixture.platform.reports().back();
    EXPECT_EQ(last.object["data"]["content"], "3");
    EXPECT_EQ(last.source("revision"), "r3");
  });
}

TEST(Reporter, AC26_ReportsOnlyItsShardAndItsNamespaces) {
  auto options = ReporterFixture::fast_options();
  options.reporter.changes.replicas = 3;
  options.shard = 2;
  options.reporter.application_namespaces = {"team-*"};
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    for (const auto* ns : {"argocd", "team-a", "foreign"}) {
      for (int i = 0; i < 6; ++i) {  // app-0, app-3 and app-5 belong to shard 2 of 3
        fixture.put(
            {.name = "app-" + std::to_string(i), .ns = ns, .controller = "argocd", .resources = 0});
      }
    }
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(6));
    EXPECT_TRUE(co_await fixture.is_quiet());
    std::vector<std::string> seen;
    for (const auto* report : fixture.platform.find("Application", "")) {
      seen.push_back(report->object["metadata"]["namespace"].get<std::string>() + "/" +
                     report->name());
    }
    EXPECT_THAT(seen, UnorderedElementsAre("argocd/app-0", "argocd/app-3", "argocd/app-5",
                                           "team-a/app-0", "team-a/app-3", "team-a/app-5"));
  });
}

TEST(Reporter, AMarkOfAParentThatDoesNotExistHidesNothing) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    fixture.kube.put(k8s::resources::kConfigMaps,
                     {{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", {{"name", "argocd-cm"}, {"namespace", "argocd"}}},
                      {"data", {{"application.resourceTrackingMethod", "label"}}}});
    fixture.put({.resources = 0,
                 .metadata = {{"labels", {{"app.kubernetes.io/instance", "some-helm-release"}}}}});
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_EQ(fixture.platform.reports()[0].source("appName"), "");
    EXPECT_EQ(fixture.platform.reports()[0].source("trackingMethod"), "label");
  });
}

TEST(Reporter, AChildApplicationIsReportedAsItsParentsResource) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    fixture.put({.name = "apps", .uid = "uid-apps", .resources = 0});
    const json mark = {
        {"argocd.argoproj.io/tracking-id", "apps:argoproj.io/Application:argocd/web"}};
    const SampleApp child{.resources = 0, .metadata = {{"annotations", mark}}};
    fixture.argocd.set_managed_resources("apps",
                                         json::array({{{"group", "argoproj.io"},
                                                       {"kind", "Application"},
                                                       {"namespace", "argocd"},
                                                       {"name", "web"},
                                                       {"targetState", R"({"desired":true})"},
                                                       {"liveState", "null"}}}));
    fixture.put(child);
    co_await fixture.start_reporter();
    const auto* report = co_await fixture.platform.wait_for(
        [](const test::FakePlatform::Report& candidate) { return candidate.name() == "web"; },
        deadline_after(std::chrono::seconds(3)));
    CO_ASSERT_TRUE(report != nullptr);
    EXPECT_EQ(report->source("appName"), "apps");
    EXPECT_EQ(report->source("appUID"), "uid-apps");
    EXPECT_EQ(report->source("desiredManifest"), R"({"desired":true})");
  });
}

TEST(Reporter, OnlyTheChildIsReadOfItsParentsManagedResources) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    fixture.put({.name = "apps", .uid = "uid-apps", .resources = 3});
    fixture.put({.resources = 0,
                 .metadata = {{"annotations",
                               {{"argocd.argoproj.io/tracking-id",
                                 "apps:argoproj.io/Application:argocd/web"}}}}});
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_EQ(fixture.argocd.count("GET",
                                   "/applications/apps/managed-resources?appNamespace=argocd&"
                                   "project=default&group=argoproj.io&kind=Application&"
                                   "namespace=argocd&name=web"),
              1U);
  });
}

TEST(Reporter, WithoutItsParentAChildIsReportedAsARootApplication) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    const SampleApp parent{.name = "apps", .uid = "uid-apps", .resources = 0};
    fixture.put(parent);
    fixture.put({.resources = 0,
                 .metadata = {{"annotations",
                               {{"argocd.argoproj.io/tracking-id",
                                 "apps:argoproj.io/Application:argocd/web"}}}}});
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_EQ(fixture.platform.find("Application", "web")[0]->source("appName"), "apps");
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.remove(parent);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    CO_ASSERT_EQ(fixture.platform.find("Application", "web").size(), 2U);
    EXPECT_EQ(fixture.platform.find("Application", "web")[1]->source("appName"), "");
    EXPECT_NE(fixture.platform.find("Application", "web")[1]->source("actualManifest"), "");
  });
}

// The label has a key of its own, and an annotation is left from another tracking method. The parent is
// made, goes, and is made again while Argo CD is away at the start.
TEST(Reporter, AChildFollowsItsParentByTheInstanceLabelOfArgoCdsSettings) {
  const test::TempDir folder;
  play(with_ledger(folder), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    fixture.kube.put(k8s::resources::kConfigMaps,
                     {{"metadata", {{"name", "argocd-cm"}, {"namespace", "argocd"}}},
                      {"data",
                       {{"application.resourceTrackingMethod", "label"},
                        {"application.instanceLabelKey", "argocd.argoproj.io/instance"}}}});
    SampleApp parent{.name = "apps", .uid = "uid-apps", .resources = 0};
    fixture.put({.resources = 0,
                 .metadata = {{"labels", {{"argocd.argoproj.io/instance", "apps"}}},
                              {"annotations",
                               {{"argocd.argoproj.io/tracking-id",
                                 "others:argoproj.io/Application:argocd/web"}}}}});
    co_await fixture.start_reporter();
    const auto follows = [&fixture](const std::string& uid) {
      return test::eventually(
          [&fixture, uid] {
            const auto events = fixture.platform.find("Application", "web");
            return !events.empty() && events.back()->source("appUID") == uid;
          },
          "an event of the child with its parent");
    };
    CO_ASSERT_TRUE(co_await follows(""));
    fixture.put(parent);
    CO_ASSERT_TRUE(co_await follows("uid-apps"));
    fixture.remove(parent);
    CO_ASSERT_TRUE(co_await follows(""));
    EXPECT_TRUE(co_await fixture.is_quiet());
    co_await fixture.stop_reporter();
    parent.uid = "uid-again";
    fixture.put(parent);
    fixture.argocd.fail_next(20, 503, {}, "/api/version");
    co_await fixture.start_reporter();
    EXPECT_TRUE(co_await follows("uid-again"));
  });
}

TEST(Reporter, AChildIsReportedAsTheResourceOfAParentThatIsMadeLater) {
  const test::TempDir folder;
  auto options = ReporterFixture::fast_options();
  options.ledger.path = (folder / "ledger.db").string();
  play(options, [](ReporterFixture& fixture) -> Task<> {
    const SampleApp parent{.name = "apps", .uid = "uid-apps", .resources = 0};
    co_await fixture.start();
    fixture.put({.resources = 0,
                 .metadata = {{"annotations",
                               {{"argocd.argoproj.io/tracking-id",
                                 "apps:argoproj.io/Application:argocd/web"}}}}});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_EQ(fixture.platform.reports()[0].source("appName"), "");
    fixture.put(parent);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    EXPECT_EQ(fixture.platform.find("Application", "web").back()->source("appUID"), "uid-apps");
    // Also when it is recreated while nobody watches.
    co_await fixture.stop_reporter();
    fixture.remove(parent);
    auto again = parent;
    again.uid = "uid-again";
    fixture.put(again);
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          return fixture.platform.find("Application", "web").back()->source("appUID") ==
                 "uid-again";
        },
        "the event of the new application"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    const auto reads = fixture.argocd.reads().total();
    co_await fixture.stop_reporter();
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.not_ready("applications").empty(); }, "applications to be ready"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.argocd.reads().total(), reads) << "a restart reads none of them";
  });
}

TEST(Reporter, StatusShowsWhereItStands) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.platform.fail_next(1, 503);
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    const auto status = fixture.status();
    EXPECT_EQ(status.state("applications"), "ok") << status;
    EXPECT_EQ(status.count("applications", "count"), 1);
    EXPECT_THAT(status.text("last acknowledgement", "time"), StartsWith("20"));
    EXPECT_THAT(status.message("last error of platform"),
                AllOf(StartsWith("20"), HasSubstr("503")));
  });
}

TEST(Reporter, ASignOfLifeComesWhenThereIsNothingToReport) {
  auto options = ReporterFixture::fast_options();
  options.reporter.queue.heartbeat = std::chrono::milliseconds(1500);
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_THAT(fixture.events("", 3), ElementsAre("web"));
  });
}

TEST(Reporter, AResourceThatChangesWithoutAWriteToItsApplicationIsFound) {
  auto options = ReporterFixture::fast_options();
  options.reporter.sweep = std::chrono::milliseconds(100);
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 2};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    auto tree = app.tree();
    tree["nodes"][1]["health"] = {{"status", "Degraded"}, {"message", "no space"}};
    fixture.argocd.set_tree(app.name, tree);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    const auto found = fixture.platform.find("ConfigMap", "c-1");
    EXPECT_EQ(found.back()->source("healthStatus"), "Degraded");
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 3), UnorderedElementsAre("web", "c-1"));
  });
}

// The reads alone take twice the period.
TEST(Reporter, TheSweepReadsEachTreeInItsPeriodAlsoWhenArgoCdIsSlow) {
  auto options = ReporterFixture::fast_options();
  options.reporter.sweep = std::chrono::seconds(20);
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const auto name = [](int i) { return "app-" + std::to_string(i); };
    for (int i = 0; i < 40; ++i) {
      fixture.put({.name = name(i), .uid = "uid-" + std::to_string(i), .resources = 0});
    }
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(40));
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.argocd.forget_requests();
    fixture.argocd.delay_answers(std::chrono::seconds(1), "/resource-tree");
    co_await sleep_for(std::chrono::seconds(42));  // to the end of this round, and the next one
    for (int i = 0; i < 40; ++i) {
      EXPECT_GT(fixture.argocd.count("GET", "/" + name(i) + "/resource-tree"), 0U) << i;
    }
  });
}

TEST(Reporter, EveryStateOfAnotherMilestoneIsReportedWhileAllIsWell) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.not_ready("applications").empty(); }, "applications to be ready"));
    for (int i = 0; i < 8; ++i) {
      fixture.put({.revision = i % 2 == 0 ? "r1" : "r2",
                   .sync_status = i % 2 == 0 ? "OutOfSync" : "Synced",
                   .resources = 0});
    }
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(8));
    for (std::size_t i = 0; i < 8; ++i) {
      const auto& report = fixture.platform.reports()[i];
      EXPECT_EQ(report.source("syncStatus"), i % 2 == 0 ? "OutOfSync" : "Synced") << i;
      EXPECT_EQ(report.object["status"]["sync"]["revision"], i % 2 == 0 ? "r1" : "r2") << i;
    }
  });
}

TEST(Reporter, AnApplicationOfAnotherArgoCdIsNotReported) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    auto foreign = SampleApp{.name = "foreign", .uid = "uid-f", .resources = 0}.application();
    foreign["status"]["controllerNamespace"] = "other-argocd";
    fixture.kube.put(k8s::resources::kApplications, foreign);
    fixture.put({.name = "own", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events(), ElementsAre("own"));
  });
}

// Several Argo CDs may serve the namespaces of teams; a new Application names none yet.
TEST(Reporter, AnApplicationOfATeamWaitsUntilItsArgoCdIsKnown) {
  auto options = ReporterFixture::fast_options();
  options.reporter.application_namespaces = {"team-*"};
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    auto ours = SampleApp{.name = "ours", .ns = "team-a", .uid = "uid-o", .resources = 0};
    auto foreign = SampleApp{.name = "anothers", .ns = "team-a", .uid = "uid-a", .resources = 0};
    fixture.put(ours);
    fixture.put(foreign);
    fixture.put({.name = "own", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events(), ElementsAre("own"));
    foreign.controller = "other-argocd";
    fixture.put(foreign);
    ours.controller = "argocd";
    fixture.put(ours);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events(), ElementsAre("own", "ours"));
  });
}

TEST(Reporter, AnApplicationThatAnotherArgoCdTakesOverIsTakenBack) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    SampleApp app{.resources = 1};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    app.controller = "other-argocd";
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    app.sync_status = "OutOfSync";
    fixture.put(app);
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 2), ElementsAre("web gone", "c-0 gone"));
    EXPECT_EQ(fixture.ledger().known().size(), 0U);
  });
}

TEST(Reporter, ANewRevisionResendsEveryResourceWhereThatIsAskedFor) {
  auto options = ReporterFixture::fast_options();
  options.reporter.application.resend_on_revision = true;
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 3});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    fixture.put({.revision = "r2", .resources = 3});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(8));
  });
}

}  // namespace
}  // namespace gitops::reporter
