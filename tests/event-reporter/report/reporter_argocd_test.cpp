// What is reported while Argo CD does not answer, or not all of it.

#include <algorithm>
#include <ctime>
#include <set>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event-reporter/event/digest.hpp"
#include "event-reporter/report/play_reporter.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(Reporter, ASlowApplicationHoldsUpNoOther) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.argocd.delay_answers(std::chrono::hours(1), "/applications/slow/");
    fixture.put({.name = "slow", .resources = 1});
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.argocd.count("GET", "/applications/slow/") > 0; },
        "a read of the slow application"));
    for (int i = 0; i < 20; ++i) fixture.put({.name = "app-" + std::to_string(i), .resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(40));
    EXPECT_THAT(fixture.events("Application"), SizeIs(20));
    EXPECT_THAT(fixture.events("Application"), Not(Contains("slow")));
    fixture.argocd.end_faults();
    CO_ASSERT_OK(co_await fixture.argocd.restart());
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(42));
  });
}

// Git and the managed cluster were away while Argo CD's controller started.
TEST(Reporter, AFailedComparisonDeletesNothing) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 3};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    auto failed = app.application();
    failed["status"]["resources"] = json::array();
    failed["status"]["sync"]["status"] = "Unknown";
    failed["status"]["conditions"] = {{{"type", "ComparisonError"}, {"message", "no Git"}},
                                      {{"type", "UnknownError"}, {"message", "no cluster"}}};
    fixture.argocd.set_tree(app.name, {{"nodes", json::array()}});
    fixture.argocd.set_managed_resources(app.name, json::array());
    fixture.kube.put(k8s::resources::kApplications, failed);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 4), ElementsAre("web"));
    EXPECT_THAT(fixture.platform.reports()[4].data["errors"].dump(), HasSubstr("no cluster"));
    // Compared again, it lacks one for good.
    fixture.put({.resources = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(7));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 5), ElementsAre("web", "c-2 gone"));
  });
}

// Argo CD's answers change before the Application, and a look at the resource tree may come between.
TEST(Reporter, AnswersThatAreAheadOfTheApplicationDeleteNothing) {
  auto options = ReporterFixture::fast_options();
  options.reporter.sweep = std::chrono::milliseconds(50);
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    SampleApp app{.resources = 2};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    const auto reads = fixture.argocd.reads().managed;
    fixture.argocd.set_managed_resources(app.name, json::array());
    fixture.argocd.set_tree(app.name, {{"nodes", json::array()}});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.argocd.reads().managed > reads; },
                                             "another read of managed resources"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.reports().size(), 3U);
    // Then the Application says that they are gone.
    app.resources = 0;
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(6));
    EXPECT_THAT(fixture.events("ConfigMap", 3), UnorderedElementsAre("c-0 gone", "c-1 gone"));
  });
}

// A restart in the middle of it knows no more.
TEST(Reporter, WhatAFailedComparisonHidesIsDueAgainAfterARestart) {
  const test::TempDir folder;
  auto options = ReporterFixture::fast_options();
  options.ledger.path = (folder / "ledger.db").string();
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    SampleApp app{.resources = 1};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    auto failed = app.application();
    failed["status"]["conditions"] = {{{"type", "ComparisonError"}, {"message", "no Git"}}};
    fixture.kube.put(k8s::resources::kApplications, failed);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    EXPECT_TRUE(co_await fixture.is_quiet());
    co_await fixture.stop_reporter();
    const auto reads = fixture.argocd.reads().tree;
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.argocd.reads().tree > reads; },
                                             "another read of the tree"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.reports().size(), 3U);
  });
}

TEST(Reporter, WithoutATreeNoResourceIsReported) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.argocd.fail_next(1'000'000, 500, {}, "/resource-tree");
    fixture.put({.resources = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events(), ElementsAre("web"));
    fixture.argocd.end_faults();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    EXPECT_THAT(fixture.events("ConfigMap"), UnorderedElementsAre("c-0", "c-1"));
  });
}

// As the default backend of an ingress answers.
TEST(Reporter, WithoutArgoCdsSettingsNothingIsKnown) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    fixture.argocd.fail_next(1'000'000, 404, {}, "/api/version");
    fixture.put({.resources = 2});
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return fixture.argocd.count("GET", "/api/version") > 5; },
                                  "more than five reads of the version"));
    EXPECT_THAT(fixture.not_ready("argocd"), HasSubstr("404"));
    EXPECT_THAT(fixture.events(), IsEmpty());
    fixture.argocd.end_faults();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    EXPECT_EQ(fixture.not_ready("argocd"), "");
  });
}

// A login or a proxy in front of Argo CD, for 20 s.
TEST(Reporter, APageInPlaceOfArgoCdIsAnOutage) {
  auto options = ReporterFixture::fast_options();
  options.reporter.application.gap_retry = std::chrono::minutes(5);
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.argocd.fail_next(1'000'000, 200);
    fixture.put({.revision = "r2", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.not_ready("argocd").empty(); },
                                             "argocd to be not ready"));
    EXPECT_THAT(fixture.not_ready("argocd"), HasSubstr("200 with text/html instead of JSON"));
    co_await sleep_for(std::chrono::seconds(20));
    EXPECT_THAT(fixture.events("ConfigMap"), ElementsAre("c-0"));
    fixture.argocd.end_faults();
    const auto begin = Clock::now();
    const auto* complete = co_await fixture.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.object.dump().contains("commit r2");
        },
        deadline_after(std::chrono::minutes(10)));
    EXPECT_NE(complete, nullptr);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.platform.find("ConfigMap", "c-0").size() == 2; },
        "two events of c-0"));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(45));
    EXPECT_EQ(fixture.not_ready("argocd"), "");
    for (const auto& report : fixture.platform.reports()) {
      EXPECT_THAT(report.object.dump(), Not(HasSubstr("DOCTYPE")));
    }
  });
}

// Argo CD refuses what concerns one Application for some seconds, as while its rights are changed. The row must not stay
// wrong for the longest pause.
TEST(Reporter, AShortRefusalHealsSoon) {
  auto options = ReporterFixture::fast_options();
  options.reporter.application.gap_retry = std::chrono::minutes(5);
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.argocd.fail_next(1'000'000, 422);
    fixture.put({.revision = "r2", .resources = 1, .content = 2});
    co_await sleep_for(std::chrono::seconds(8));
    fixture.argocd.end_faults();
    const auto begin = Clock::now();
    const auto* complete = co_await fixture.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.object.dump().contains("commit r2");
        },
        deadline_after(std::chrono::minutes(10)));
    EXPECT_NE(complete, nullptr);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.platform.find("ConfigMap", "c-0").size() == 2; },
        "two events of c-0"));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
  });
}

TEST(Reporter, APageIsNotKeptAsTheMetadataOfACommit) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.argocd.fail_next(1, 200, {}, "/revisions/");
    fixture.argocd.set_revision("r2", json{{"no", "metadata"}});
    fixture.put({.name = "web", .resources = 0});
    fixture.put({.name = "api", .uid = "uid-2", .revision = "r2", .resources = 0});
    const auto* complete = co_await fixture.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.name() == "web" && report.object.dump().contains("commit r1");
        },
        deadline_after(std::chrono::seconds(30)));
    EXPECT_NE(complete, nullptr);
    fixture.argocd.set_revision("r2", {{"author", "A"}, {"message", "commit r2"}});
    complete = co_await fixture.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.name() == "api" && report.object.dump().contains("commit r2");
        },
        deadline_after(std::chrono::seconds(30)));
    EXPECT_NE(complete, nullptr);
  });
}

// An API server that starts refuses what it allows later.
TEST(Reporter, ARefusedReadOfArgoCdsSettingsLeavesThemAsTheyWere) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    fixture.kube.put(k8s::resources::kConfigMaps,
                     {{"metadata", {{"name", "argocd-cm"}, {"namespace", "argocd"}}},
                      {"data", {{"application.resourceTrackingMethod", "label"}}}});
    fixture.put({.resources = 0});
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_EQ(fixture.platform.reports()[0].source("trackingMethod"), "label");
    const auto reads = fixture.kube.count("GET", "/configmaps/argocd-cm");
    fixture.kube.fail_next(1'000'000, 403, {}, "/configmaps/argocd-cm");
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.kube.count("GET", "/configmaps/argocd-cm") > reads + 1; },
        "two more reads of the settings", std::chrono::minutes(2)));
    fixture.put({.revision = "r2", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_EQ(fixture.platform.reports()[1].source("trackingMethod"), "label");
  });
}

// As after a restart of the whole cluster. Events with the defaults would stay until the next change.
TEST(Reporter, AnApiServerThatStartsIsNoReasonToAssumeArgoCdsDefaults) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    fixture.kube.put(k8s::resources::kConfigMaps,
                     {{"metadata", {{"name", "argocd-cm"}, {"namespace", "argocd"}}},
                      {"data", {{"application.resourceTrackingMethod", "label"}}}});
    fixture.kube.fail_next(3, 403, {}, "/configmaps/argocd-cm");
    fixture.put({.resources = 0});
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_EQ(fixture.platform.reports()[0].source("trackingMethod"), "label");
  });
}

TEST(Reporter, WithoutThePermissionForArgoCdsSettingsItsDefaultsAreAssumed) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    fixture.kube.fail_next(1'000'000, 403, {}, "/configmaps/argocd-cm");
    fixture.put({.resources = 0});
    co_await fixture.start_reporter();
    EXPECT_TRUE(co_await test::eventually([&] { return fixture.platform.reports().size() == 1; },
                                          "the event of the Application", std::chrono::minutes(2)));
  });
}

// The API server refuses a read for a moment; the child is no root application because of that.
TEST(Reporter, ARefusedReadOfTheParentMakesNoRootApplication) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    fixture.put({.name = "apps", .uid = "uid-apps", .resources = 0});
    fixture.put({.resources = 0,
                 .metadata = {{"annotations",
                               {{"argocd.argoproj.io/tracking-id",
                                 "apps:argoproj.io/Application:argocd/web"}}}}});
    fixture.kube.fail_next(2, 403, {}, "/applications/apps");
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_TRUE(co_await fixture.is_quiet());
    for (const auto* report : fixture.platform.find("Application", "web")) {
      EXPECT_EQ(report->source("appName"), "apps");
    }
  });
}

TEST(Reporter, APageInPlaceOfArgoCdsSettingsIsNotTakenForThem) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    fixture.kube.put(k8s::resources::kConfigMaps,
                     {{"metadata", {{"name", "argocd-cm"}, {"namespace", "argocd"}}},
                      {"data", {{"application.resourceTrackingMethod", "label"}}}});
    fixture.kube.fail_next(3, 200, {}, "/configmaps/argocd-cm");
    fixture.put({.resources = 0});
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_EQ(fixture.platform.reports()[0].source("trackingMethod"), "label");
  });
}

// -- metadata of commits that Argo CD has not --

// The Application with these sources, synced to these revisions of them.
json with_sources(const SampleApp& app, const json& sources, const json& revisions) {
  auto out = app.application();
  out["spec"].erase("source");
  out["spec"]["sources"] = sources;
  out["status"]["sync"] = {{"status", app.sync_status},
                           {"revisions", revisions},
                           {"comparedTo", {{"sources", sources}}}};
  out["status"]["history"] = {{{"id", 1}, {"revisions", revisions}, {"sources", sources}}};
  return out;
}

TEST(Reporter, AnOciSourceAndAChartDelayNothing) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 1};
    const json sources = {{{"repoURL", "https://git.example.com/shop.git"}, {"path", "."}},
                          {{"repoURL", "oci://registry.example.com/app"}, {"path", "."}},
                          {{"repoURL", "https://charts.example.com"}, {"chart", "web"}}};
    fixture.argocd.set_tree(app.name, app.tree());
    fixture.argocd.set_managed_resources(app.name, app.managed());
    const auto begin = Clock::now();
    fixture.kube.put(k8s::resources::kApplications,
                     with_sources(app, sources, {"r1", "sha256:" + std::string(64, 'a'), "1.2.3"}));
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(1));
    EXPECT_THAT(fixture.events(), ElementsAre("web", "c-0"));
    EXPECT_EQ(fixture.platform.reports()[0].object["metadata"]["labels"]["app.meta.commit-message"],
              "commit r1");
    EXPECT_EQ(fixture.argocd.reads().revisions, 1U);
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_TRUE(fixture.ledger().known().at("argocd/web").change) << "nothing is due";
  });
}

TEST(Reporter, OneOfSeveralCommitsThatIsNotKnownDropsNoOther) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 0};
    const json sources = {{{"repoURL", "https://git.example.com/a.git"}, {"path", "."}},
                          {{"repoURL", "https://git.example.com/b.git"}, {"path", "."}}};
    fixture.argocd.set_tree(app.name, app.tree());
    fixture.argocd.set_managed_resources(app.name, app.managed());
    fixture.kube.put(k8s::resources::kApplications, with_sources(app, sources, {"gone", "r2"}));
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_EQ(fixture.platform.reports()[0].object["metadata"]["annotations"].size(), 1U);
    EXPECT_THAT(fixture.platform.reports()[0].object.dump(),
                AllOf(HasSubstr("commit r2"), HasSubstr(R"(\"metadata\":null)")));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.reports().size(), 1U);
  });
}

// A repository that is gone, or a commit that was overwritten: Argo CD answers 500, as in an outage
// of the Git host.
TEST(Reporter, ACommitThatArgoCdGoesOnRefusingIsNotWaitedFor) {
  auto options = ReporterFixture::fast_options();
  options.reporter.application.gap_retry = std::chrono::minutes(5);
  options.reporter.sweep = std::chrono::minutes(5);
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.argocd.fail_next(1'000'000, 500, {}, "/revisions/");
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(
        co_await fixture.platform.wait_for_count(2, deadline_after(std::chrono::seconds(15))));
    EXPECT_THAT(fixture.events(), ElementsAre("web", "c-0"));
    co_await sleep_for(std::chrono::seconds(60));
    EXPECT_TRUE(fixture.ledger().known().at("argocd/web").change) << "nothing is due";
    EXPECT_EQ(fixture.status().count("oldest unacknowledged change", "age_ms"), 0);
    // Its changes are told at once.
    const auto begin = Clock::now();
    fixture.put({.sync_status = "OutOfSync", .resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(1));
    // The sweep asks again.
    fixture.argocd.end_faults();
    const auto* complete = co_await fixture.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.object.dump().contains("commit r1");
        },
        deadline_after(std::chrono::minutes(15)));
    EXPECT_NE(complete, nullptr);
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.reports().size(), 5U);
  });
}

// spec.valuesObject of the parent is nested deeper than any reader of ours goes.
TEST(Reporter, AParentThatCannotBeReadSilencesNoChild) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    json deep = 1;
    for (int i = 0; i < 1'100; ++i) {
      json next = json::object();
      next["d"] = std::move(deep);
      deep = std::move(next);
    }
    auto parent = SampleApp{.name = "apps", .uid = "uid-apps", .resources = 0}.application();
    parent["spec"]["deep"] = std::move(deep);
    fixture.kube.put(k8s::resources::kApplications, parent);
    fixture.argocd.set_tree("apps", {{"nodes", json::array()}});
    fixture.argocd.set_managed_resources("apps", json::array());
    fixture.put({.resources = 1,
                 .metadata = {{"annotations",
                               {{"argocd.argoproj.io/tracking-id",
                                 "apps:argoproj.io/Application:argocd/web"}}}}});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_THAT(fixture.events(), ElementsAre("web", "c-0"));
    EXPECT_EQ(fixture.platform.reports()[0].source("appName"), "apps");
  });
}

// The watch sets the state aside, but a sweep or a reconcile reads it. Nothing stays due, so no
// alert tells of a control plane that is behind.
TEST(Reporter, AnApplicationThatBecomesUnreadableIsReportedWithItsNextState) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 0};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    json deep = 1;
    for (int i = 0; i < 1'100; ++i) {
      json next = json::object();
      next["d"] = std::move(deep);
      deep = std::move(next);
    }
    auto unreadable = app.application();
    unreadable["spec"]["deep"] = std::move(deep);
    fixture.kube.put(k8s::resources::kApplications, unreadable);
    fixture.reporter().changes().compare_again("argocd/web");
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.metric("gitops_event_reporter_unreadable_total") > 0; },
        "the count of what cannot be read"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_TRUE(co_await test::eventually(
        [&] { return fixture.status().count("oldest unacknowledged change", "age_ms") == 0; },
        "nothing that is due"));
    fixture.put({.revision = "r2", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_THAT(fixture.events(), ElementsAre("web", "web"));
  });
}

// A repository so large that its fetch takes longer than any answer may take.
TEST(Reporter, AHungReadOfCommitsSilencesNoApplication) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.argocd.delay_answers(std::chrono::hours(1), "/revisions/");
    for (int i = 0; i < 20; ++i) {
      fixture.put(
          {.name = "app-" + std::to_string(i), .uid = "uid-" + std::to_string(i), .resources = 1});
    }
    const auto begin = Clock::now();
    CO_ASSERT_TRUE(
        co_await fixture.platform.wait_for_count(40, deadline_after(std::chrono::minutes(5))));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(60));
    EXPECT_THAT(fixture.events("Application"), SizeIs(20));
    EXPECT_EQ(fixture.not_ready("argocd"), "");
    // They share every attempt, and so its failure.
    EXPECT_LE(fixture.argocd.reads().revisions, 6U);
    fixture.argocd.end_faults();
    CO_ASSERT_OK(co_await fixture.argocd.restart());
    const auto* complete = co_await fixture.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.object.dump().contains("commit r1");
        },
        deadline_after(std::chrono::minutes(10)));
    EXPECT_NE(complete, nullptr);
  });
}

// As that of an application with thousands of resources, each time. It takes most of the time for all reads.
TEST(Reporter, ASlowTreeLeavesTimeForTheCommits) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.argocd.delay_answers(std::chrono::seconds(9), "/resource-tree");
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(
        co_await fixture.platform.wait_for_count(2, deadline_after(std::chrono::minutes(5))));
    EXPECT_EQ(fixture.platform.reports()[1].source("commitAuthor"), "Dana <dana@example.com>");
    EXPECT_EQ(fixture.argocd.reads().tree, 1U);
    EXPECT_TRUE(co_await test::eventually(
        [&] { return fixture.status().count("queue", "waiting") == 0; }, "an idle queue"));
  });
}

// As of an application whose answer has 50 MB. Its own event does not wait for it.
TEST(Reporter, ResourcesThatTakeLongToReadAreReportedAfterTheirApplication) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.argocd.delay_answers(std::chrono::seconds(20), "/managed-resources");
    const auto begin = Clock::now();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(15));
    CO_ASSERT_TRUE(
        co_await fixture.platform.wait_for_count(3, deadline_after(std::chrono::minutes(5))));
    // The first event of the application comes without the commit, for which no time was left.
    EXPECT_THAT(fixture.events(), ElementsAre("web", "web", "c-0"));
    // Neither does the next one, though it comes during such a read.
    fixture.argocd.delay_answers(std::chrono::hours(1), "/managed-resources");
    const auto reads = fixture.argocd.reads().managed;
    fixture.put({.revision = "r2", .resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.argocd.reads().managed >= reads + 2; }, "a long read"));
    const auto next = Clock::now();
    fixture.put({.revision = "r3", .resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_LT(Clock::now() - next, std::chrono::seconds(20));
  });
}

// Otherwise the alert about Argo CD sends people to the wrong place.
TEST(Reporter, AnApplicationThatTheApiServerRefusesIsNoFailureOfArgoCd) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.kube.fail_next(1, 403, {}, "/applications/web");
    fixture.reporter().changes().compare_again("argocd/web");
    const std::string errors = "gitops_event_reporter_errors_total{code=\"forbidden\",peer=";
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return fixture.metric(errors + "\"kubernetes\"") == 1; },
                                  "the count of the failed read"));
    EXPECT_EQ(fixture.metric(errors + "\"argocd\""), 0);
  });
}

TEST(Reporter, APauseThatArgoCdAsksForDoesNotDelayTheApplicationsOwnEvent) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.argocd.fail_next(1'000'000, 429, std::chrono::minutes(5), "/resource-tree");
    const auto begin = Clock::now();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
    EXPECT_THAT(fixture.events(), ElementsAre("web"));
  });
}

// A gap that lasts has pauses of its own, which double from a short one.
TEST(Reporter, APauseThatArgoCdAsksForIsKeptHoweverLongTheGapLasts) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.argocd.fail_next(1'000'000, 429, std::chrono::minutes(5), "/resource-tree");
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    co_await sleep_for(std::chrono::minutes(40));
    const auto reads = fixture.argocd.count("GET", "/resource-tree");
    co_await sleep_for(std::chrono::minutes(10));
    EXPECT_LE(fixture.argocd.count("GET", "/resource-tree"), reads + 5);
  });
}

TEST(Reporter, AHungTreeSilencesNoApplication) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    fixture.argocd.delay_answers(std::chrono::hours(1), "/resource-tree");
    fixture.put({.revision = "r2", .sync_status = "OutOfSync", .resources = 0});
    CO_ASSERT_TRUE(
        co_await fixture.platform.wait_for_count(3, deadline_after(std::chrono::seconds(30))));
    EXPECT_EQ(fixture.events().back(), "web");
    EXPECT_EQ(fixture.platform.reports().back().source("syncStatus"), "OutOfSync");
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.reports().size(), 3U) << "nothing is gone";
    fixture.argocd.end_faults();
    CO_ASSERT_OK(co_await fixture.argocd.restart());
    CO_ASSERT_TRUE(
        co_await fixture.platform.wait_for_count(4, deadline_after(std::chrono::minutes(10))));
    EXPECT_EQ(fixture.events().back(), "c-0 gone");
  });
}

TEST(Reporter, ManySlowApplicationsHoldUpNoOther) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.argocd.delay_answers(std::chrono::hours(1), "/applications/slow-");
    for (int i = 0; i < 40; ++i) {
      fixture.put(
          {.name = "slow-" + std::to_string(i), .uid = "uid-" + std::to_string(i), .resources = 1});
    }
    // Each has been tried once; from now on they have their place.
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.metric("gitops_event_reporter_slow_objects") == 40; },
        "40 slow objects"));
    for (int i = 0; i < 30; ++i) {
      const auto before = Clock::now();
      const auto seen = fixture.platform.find("ConfigMap", "c-0").size();
      fixture.put({.resources = 1,
                   .content = i,
                   .metadata = {{"labels", {{"content", std::to_string(i)}}}}});
      CO_ASSERT_TRUE(co_await test::eventually(
          [&] { return fixture.platform.find("ConfigMap", "c-0").size() > seen; },
          "another event of c-0"));
      EXPECT_LT(Clock::now() - before, std::chrono::seconds(1)) << i;
    }
    EXPECT_EQ(fixture.status().count("slow", "workers_in_use"), 8);
    EXPECT_EQ(fixture.status().count("slow", "workers_in_use_of"), 8);
  });
}

// They are new, so nothing is known of them yet.
TEST(Reporter, SlowApplicationsThatAreFirstInTheQueueLeaveItSoon) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    fixture.argocd.delay_answers(std::chrono::hours(1), "/applications/slow-");
    for (int i = 0; i < 40; ++i) {
      fixture.put(
          {.name = "slow-" + std::to_string(i), .uid = "uid-" + std::to_string(i), .resources = 1});
    }
    fixture.put({.name = "well", .resources = 1});
    co_await fixture.start_reporter();
    const auto begin = Clock::now();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(3));
    EXPECT_THAT(fixture.events("Application"), ElementsAre("well"));
  });
}

TEST(Reporter, ASupersededStateNeedsNoManagedResources) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    const auto reads = fixture.argocd.reads().managed;
    // So long that the second state comes before the next attempt with the first one.
    fixture.platform.fail_next(1, 503, std::chrono::seconds(2));
    fixture.put({.revision = "r2", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.not_ready("platform").empty(); },
                                             "platform to be not ready"));
    fixture.put({.revision = "r3", .resources = 1, .content = 3});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_EQ(fixture.argocd.reads().managed, reads + 2) << "of the first attempt and of r3";
  });
}

TEST(Reporter, ArgoCdAwayMeansNotReadyAndNothingLost) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    co_await fixture.argocd.stop();
    fixture.put({.revision = "r2", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.not_ready("argocd").empty(); },
                                             "argocd to be not ready"));
    CO_ASSERT_OK(fixture.argocd.start());
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_THAT(fixture.events("", 2), ElementsAre("web", "c-0"));
    EXPECT_EQ(fixture.not_ready("argocd"), "");
  });
}

TEST(Reporter, AC24_OneApplicationThatArgoCdCannotDescribeStopsNoOther) {
  auto options = ReporterFixture::fast_options();
  options.reporter.application.wait_limits.failures = 2;
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    // Argo CD does not know this one; its own event goes out all the same, without resources.
    const SampleApp unknown{.name = "unknown", .resources = 2};
    fixture.kube.put(k8s::resources::kApplications, unknown.application());
    // Of this one it tells nonsense.
    SampleApp odd{.name = "odd", .resources = 1};
    fixture.put(odd);
    fixture.argocd.set_managed_resources("odd", json{{"not", "an array"}});
    fixture.argocd.set_tree("odd", json::array({1, 2}));
    fixture.put({.resources = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_THAT(fixture.events("ConfigMap"), UnorderedElementsAre("c-0", "c-1"));
    EXPECT_THAT(fixture.events("Application"), UnorderedElementsAre("web", "unknown", "odd"));
    // It is told as soon as it makes sense.
    fixture.put(odd);
    const auto* healed = co_await fixture.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.kind() == "ConfigMap" && report.source("appName") == "odd" &&
                 !report.source("actualManifest").empty();
        },
        deadline_after(std::chrono::seconds(5)));
    EXPECT_NE(healed, nullptr);
  });
}

// A 200 whose JSON is of somebody else. Without it the state of the resources is not known.
TEST(Reporter, AnAnswerWithoutItsListsIsAskedForAgain) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_TRUE(co_await fixture.is_quiet());
    const SampleApp changed{.revision = "r2", .resources = 1, .content = 2};
    const auto reads = fixture.argocd.count("GET", "/managed-resources");
    fixture.argocd.set_managed_resources("web", json{{"not", "a list"}});
    fixture.kube.put(k8s::resources::kApplications, changed.application());
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.argocd.count("GET", "/managed-resources") > reads; },
        "a read of the managed resources"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.argocd.set_managed_resources("web", changed.managed());
    EXPECT_TRUE(co_await test::eventually(
        [&] { return fixture.platform.find("ConfigMap", "c-0").size() == 2; },
        "the new state of c-0"));
  });
}

// Its end may be hours away, when a finalizer waits for something.
TEST(Reporter, AResourceThatGoesBeforeItsApplicationIsToldAlsoAfterAFailedRead) {
  for (const int status : {500, 404}) {
    play([status](ReporterFixture& fixture) -> Task<> {
      co_await fixture.start();
      fixture.put({.resources = 2});
      CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
      EXPECT_TRUE(co_await fixture.is_quiet());
      fixture.argocd.fail_next(1, status, {}, "/managed-resources");
      fixture.put({.resources = 1,
                   .metadata = {{"deletionTimestamp", "2026-03-04T09:15:27Z"},
                                {"finalizers", {"resources-finalizer.argocd.argoproj.io"}}}});
      CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
      EXPECT_TRUE(co_await fixture.is_quiet());
      // An application that Argo CD does not know has no resources to be told of.
      EXPECT_EQ(std::ranges::count(fixture.events("ConfigMap", 3), "c-1 gone"),
                status == 500 ? 1 : 0);
    });
  }
}

// One answer says that Argo CD does not know the application, which then stays for a while.
TEST(Reporter, TheSweepMakesUpForWhatWasNotToldOfAnApplicationInDeletion) {
  for (const auto* path : {"/managed-resources", "/resource-tree"}) {
    auto options = ReporterFixture::fast_options();
    options.reporter.sweep = std::chrono::milliseconds(50);
    play(options, [path](ReporterFixture& fixture) -> Task<> {
      co_await fixture.start();
      fixture.put({.resources = 2});
      CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
      EXPECT_TRUE(co_await fixture.is_quiet());
      fixture.argocd.fail_next(1, 404, {}, path);
      fixture.put({.resources = 1,
                   .metadata = {{"deletionTimestamp", "2026-03-04T09:15:27Z"},
                                {"finalizers", {"resources-finalizer.argocd.argoproj.io"}}}});
      EXPECT_TRUE(co_await test::eventually(
          [&] { return std::ranges::count(fixture.events("ConfigMap", 3), "c-1 gone") == 1; },
          "the deletion of c-1"))
          << path;
      const auto reads = fixture.argocd.count("GET", "/managed-resources");
      EXPECT_TRUE(co_await fixture.is_quiet());
      EXPECT_EQ(fixture.argocd.count("GET", "/managed-resources"), reads);
    });
  }
}

// -- answers of Argo CD beyond all sizes --

// 6 ConfigMaps of two namespaces and a Deployment, of which Argo CD tells 3 KB each, and no answer may
// have more than `argocd_answer`.
struct LargeApp {
  int content = 1;
  std::string too_large = {};  // "namespace/name" of one with 12 KB
  std::vector<std::pair<std::string, std::string>> places = {
      {"shop", "a"}, {"shop", "b"}, {"shop", "c"}, {"team", "a"}, {"team", "b"}, {"team", "c"}};

  void put(ReporterFixture& fixture) const {
    json entries = json::array();
    json items = json::array();
    json nodes = json::array();
    const auto add = [&](json id, const std::string& version) {
      const auto place = id["namespace"].get<std::string>() + "/" + id["name"].get<std::string>();
      const std::size_t fill = place == too_large ? 6'000 : 1'500;
      auto entry = id;
      entry["version"] = version;
      auto node = entry;
      node["uid"] = "live";
      nodes.push_back(std::move(node));
      entry["status"] = "Synced";
      entries.push_back(std::move(entry));
      json manifest{
          {"kind", id["kind"]},
          {"metadata", {{"name", id["name"]}, {"namespace", id["namespace"]}}},
          {"data", {{"content", std::to_string(content)}, {"fill", std::string(fill, 'x')}}}};
      id["targetState"] = manifest.dump();
      id["liveState"] = manifest.dump();
      items.push_back(std::move(id));
    };
    for (const auto& [ns, name] : places) {
      add({{"kind", "ConfigMap"}, {"namespace", ns}, {"name", name}}, "v1");
    }
    add({{"group", "apps"}, {"kind", "Deployment"}, {"namespace", "shop"}, {"name", "web"}}, "v1");
    fixture.argocd.set_tree("web", {{"nodes", nodes}});
    fixture.argocd.set_managed_resources("web", items);
    auto app = SampleApp{.resources = 0}.application();
    app["metadata"]["annotations"]["content"] = std::to_string(content);
    app["status"]["resources"] = entries;
    fixture.kube.put(k8s::resources::kApplications, app);
  }
};

// "namespace/name content", each once, of events from index `first` on.
std::set<std::string> told(const ReporterFixture& fixture, std::size_t first) {
  std::set<std::string> out;
  for (std::size_t i = first; i < fixture.platform.reports().size(); ++i) {
    const auto& report = fixture.platform.reports()[i];
    if (report.kind() == "Application") continue;
    const auto& metadata = report.object["metadata"];
    out.insert(metadata.value("namespace", "") + "/" + report.name() + " " +
               (report.source("actualManifest").empty()
                    ? std::string("gone")
                    : report.object.value("data", json::object()).value("content", "")));
  }
  return out;
}

// So that the managed resources of a whole namespace fit, or of one resource alone.
TEST(Reporter, AnApplicationThatIsTooLargeForOneAnswerIsReportedInParts) {
  for (const std::size_t limit : {12'000U, 5'000U}) {
    auto options = ReporterFixture::fast_options();
    options.argocd_answer = limit;
    options.reporter.application.whole_below = 0;
    play(options, [](ReporterFixture& fixture) -> Task<> {
      co_await fixture.start();
      LargeApp app;
      app.put(fixture);
      CO_ASSERT_TRUE(co_await fixture.wait_for_events(8));
      EXPECT_TRUE(co_await fixture.is_quiet());
      EXPECT_EQ(fixture.events().front(), "web");
      EXPECT_EQ(told(fixture, 0),
                (std::set<std::string>{"shop/a 1", "shop/b 1", "shop/c 1", "team/a 1", "team/b 1",
                                       "team/c 1", "shop/web 1"}));
      // A change, and the end of a resource.
      app.content = 2;
      app.places.erase(app.places.begin());
      app.put(fixture);
      CO_ASSERT_TRUE(co_await fixture.wait_for_events(16));
      EXPECT_TRUE(co_await fixture.is_quiet());
      EXPECT_EQ(told(fixture, 8),
                (std::set<std::string>{"shop/a gone", "shop/b 2", "shop/c 2", "team/a 2",
                                       "team/b 2", "team/c 2", "shop/web 2"}));
      EXPECT_EQ(fixture.platform.reports().size(), 16U) << "each event once";
      EXPECT_TRUE(fixture.ledger().known().at("argocd/web").change) << "nothing is due";
    });
  }
}

// Argo CD looks through all resources for each part.
TEST(Reporter, PartsThatTakeLongToReadAreReportedToo) {
  auto options = ReporterFixture::fast_options();
  options.argocd_answer = 12'000;
  options.reporter.application.whole_below = 0;
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.argocd.delay_answers(std::chrono::seconds(20), "/managed-resources");
    const LargeApp app;
    app.put(fixture);
    CO_ASSERT_TRUE(
        co_await fixture.platform.wait_for_count(8, deadline_after(std::chrono::minutes(10))));
    EXPECT_EQ(told(fixture, 0),
              (std::set<std::string>{"shop/a 1", "shop/b 1", "shop/c 1", "team/a 1", "team/b 1",
                                     "team/c 1", "shop/web 1"}));
  });
}

// One resource alone is too large.
TEST(Reporter, WhatFitsIsReportedOfAnApplicationWithAResourceThatDoesNot) {
  auto options = ReporterFixture::fast_options();
  options.argocd_answer = 5'000;
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    LargeApp app;
    app.too_large = "team/a";
    app.put(fixture);
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return told(fixture, 0).size() == 6; }, "six events"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(told(fixture, 0), (std::set<std::string>{"shop/a 1", "shop/b 1", "shop/c 1",
                                                       "team/b 1", "team/c 1", "shop/web 1"}));
    EXPECT_THAT(fixture.events("Application"), ElementsAre("web"));
    EXPECT_FALSE(fixture.ledger().known().at("argocd/web").change) << "it is still due";
  });
}

// -- large answers --

// Four applications with answers that take 0.9 of 2 MB each.
TEST(Reporter, TheAnswersOfAllReportsTogetherTakeBoundedMemory) {
  auto options = ReporterFixture::fast_options();
  options.memory = 2'000'000;
  play(options, [](ReporterFixture& fixture) -> Task<> {
    constexpr int kApplications = 4;
    constexpr auto kAnswer = std::chrono::milliseconds(100);
    co_await fixture.start();
    const auto put_all = [&fixture](int content) {
      for (int i = 0; i < kApplications; ++i) {
        const auto number = std::to_string(i);
        const SampleApp app{.name = "app-" + number,
                            .uid = "uid-" + number,
                            .revision = "r" + std::to_string(content),
                            .resources = 1,
                            .content = content};
        fixture.put(app);
        auto managed = app.managed();
        managed[0]["padding"] = std::string(900'000, 'x');
        fixture.argocd.set_managed_resources(app.name, managed);
      }
    };
    put_all(1);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2 * kApplications));
    EXPECT_TRUE(co_await fixture.is_quiet());
    // Now the size of the answers is known.
    fixture.argocd.forget_requests();
    fixture.argocd.delay_answers(kAnswer, "/managed-resources");
    put_all(2);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4 * kApplications));
    std::vector<Clock::time_point> reads;
    for (const auto& request : fixture.argocd.requests()) {
      if (request.target.contains("/managed-resources")) reads.push_back(request.when);
    }
    CO_ASSERT_EQ(reads.size(), std::size_t{kApplications});
    EXPECT_LT(reads[1] - reads[0], kAnswer) << "two fit";
    EXPECT_GE(reads[2] - reads[0], kAnswer) << "three do not";
  });
}

// A sweep reads several trees at the same time. Two fit of those of applications this large.
TEST(Reporter, TheTreesThatASweepReadsTakeBoundedMemory) {
  auto options = ReporterFixture::fast_options();
  options.memory = 2'000'000;
  options.reporter.sweep = std::chrono::milliseconds(50);
  play(options, [](ReporterFixture& fixture) -> Task<> {
    constexpr std::size_t kApplications = 12;
    constexpr auto kAnswer = std::chrono::milliseconds(100);
    co_await fixture.start();
    for (std::size_t i = 0; i < kApplications; ++i) {
      const auto number = std::to_string(i);
      const SampleApp app{.name = "app-" + number, .uid = "uid-" + number, .resources = 1};
      fixture.put(app);
      auto managed = app.managed();
      managed[0]["padding"] = std::string(900'000, 'x');
      fixture.argocd.set_managed_resources(app.name, managed);
    }
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2 * kApplications));
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.argocd.forget_requests();
    fixture.argocd.delay_answers(kAnswer, "/resource-tree");
    co_await sleep_for(std::chrono::seconds(2));
    std::vector<Clock::time_point> reads;
    for (const auto& request : fixture.argocd.requests()) {
      if (request.target.contains("/resource-tree")) reads.push_back(request.when);
    }
    CO_ASSERT_TRUE(reads.size() > 10U);
    for (std::size_t i = 2; i < reads.size(); ++i) EXPECT_GE(reads[i] - reads[i - 2], kAnswer) << i;
  });
}

Clock::duration cpu_time(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

TEST(Reporter, LargeAnswersAreParsedBesideTheLoop) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 1};
    auto tree = app.tree();
    const auto node = tree["nodes"][0];
    for (int i = 0; i < 30'000; ++i) {
      tree["nodes"].push_back(node);
      tree["nodes"].back()["uid"] = "uid-" + std::to_string(i);
    }
    const auto text = tree.dump();
    CO_ASSERT_TRUE(text.size() > 2'000'000);
    const auto own = [] { return cpu_time(CLOCK_THREAD_CPUTIME_ID); };
    const auto of_others = [&own] { return cpu_time(CLOCK_PROCESS_CPUTIME_ID) - own(); };
    auto begin = own();
    std::ignore = tree_digest(text);
    const auto part = own() - begin;  // of what the report does with it
    fixture.put(app);
    fixture.argocd.set_tree("web", tree);
    begin = of_others();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_GT(of_others() - begin, part / 2);
  });
}

// The state before it is told without Argo CD's answers, too, and brings no pause of minutes.
TEST(Reporter, TheNewestStateDoesNotWaitBehindOneThatArgoCdDoesNotDescribe) {
  auto options = ReporterFixture::fast_options();
  options.reporter.application.gap_retry = std::chrono::minutes(5);
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.argocd.fail_next(100'000, 500, {}, "/applications/web/");
    fixture.put({.sync_status = "OutOfSync", .resources = 1});
    fixture.put({.revision = "r2", .resources = 1});
    const auto* newest = co_await fixture.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.kind() == "Application" &&
                 report.object["status"]["sync"]["revision"] == "r2";
        },
        deadline_after(std::chrono::seconds(30)));
    EXPECT_NE(newest, nullptr);
    EXPECT_THAT(fixture.events("", 2), ElementsAre("web", "web"));
  });
}

TEST(Reporter, ARotatedArgoCdTokenIsPickedUp) {
  play([](ReporterFixture& fixture) -> Task<> {
    const auto put_token = [&fixture](const std::string& token) {
      fixture.kube.put_secret({"argocd", "argocd-token"}, {{"token", token}});
      fixture.argocd.set_token(token);
    };
    fixture.argocd_token_secret = "argocd-token";
    co_await fixture.start_doubles();
    put_token("first.token.x");
    co_await fixture.start_reporter();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    put_token("second.token.x");
    fixture.put({.resources = 1, .content = 2, .metadata = {{"labels", {{"touched", "yes"}}}}});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_EQ(fixture.not_ready("argocd"), "");
  });
}

}  // namespace
}  // namespace gitops::reporter
