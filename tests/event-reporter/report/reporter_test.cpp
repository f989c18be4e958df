#include "event-reporter/report/reporter.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "event-reporter/ledger/ledger_file.hpp"
#include "scene.hpp"
#include "support/log_capture.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"

namespace gitops::reporter {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr auto kLimit = std::chrono::seconds(20);

// Runs a test's body with a scene around it, and always stops the scene.
void play(Scene::Options options, const std::function<Task<>(Scene&)>& body) {
  const test::LogCapture quiet;
  test::run_in_test_time(
      [&]() -> Task<> {
        Scene scene(co_await asio::this_coro::executor, options);
        scene.log = &quiet;
        std::exception_ptr failure;
        try {
          co_await body(scene);
        } catch (...) {
          failure = std::current_exception();
        }
        co_await scene.stop();
        EXPECT_THAT(scene.platform.refused(), IsEmpty());
        if (failure) std::rethrow_exception(failure);
      },
      kLimit);
  if (::testing::Test::HasFailure()) std::cerr << quiet.text() << "\n";
}

void play(const std::function<Task<>(Scene&)>& body) {
  play(Scene::fast_options(), body);
}

TEST(Reporter, ReportsAnApplicationFirstAndThenItsResources) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start_doubles();
    scene.put({.resources = 3});
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_EQ(scene.events()[0], "web");
    EXPECT_THAT(scene.events("ConfigMap"), UnorderedElementsAre("c-0", "c-1", "c-2"));
    const auto& first = scene.platform.reports()[1];
    EXPECT_EQ(first.source("commitMessage"), "commit r1");
    EXPECT_EQ(first.source("trackingMethod"), "annotation");
    EXPECT_THAT(first.event_id, HasSubstr("uid-1/"));
    EXPECT_EQ(scene.not_ready("applications"), "");
    EXPECT_EQ(scene.not_ready("argocd"), "");
    EXPECT_EQ(scene.not_ready("platform"), "");
  });
}

TEST(Reporter, ReadsArgoCdTwiceWhateverTheNumberOfResources) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    std::size_t expected = 0;
    for (const auto& [name, count] : {std::pair{"small", 5}, std::pair{"big", 100}}) {
      scene.put({.name = name, .resources = count});
      expected += static_cast<std::size_t>(count) + 1;
      CO_ASSERT_TRUE(co_await scene.wait_for_events(expected));
    }
    EXPECT_EQ(scene.argocd.reads().tree, 2U);
    EXPECT_EQ(scene.argocd.reads().managed, 2U);
    EXPECT_EQ(scene.argocd.reads().revisions, 1U);  // both are at the same commit
    scene.put({.name = "small", .revision = "r2", .content = 2});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(expected + 6));
    EXPECT_EQ(scene.argocd.reads().tree, 3U);
    EXPECT_EQ(scene.argocd.reads().managed, 3U);
    EXPECT_EQ(scene.argocd.reads().revisions, 2U);
  });
}

TEST(Reporter, ARefreshIsNeitherReadNorReported) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp app;
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(6));
    const auto reads = scene.argocd.reads().total();
    auto refreshed = app.application();
    for (const auto* time : {"2026-03-04T09:03:00Z", "2026-03-04T09:06:00Z"}) {
      refreshed["status"]["reconciledAt"] = time;
      scene.kube.put(k8s::resources::kApplications, refreshed);
    }
    CO_ASSERT_TRUE(co_await Scene::until(
        [&] { return scene.metric("gitops_event_reporter_unchanged_total") == 2; }));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.platform.reports().size(), 6U);
    EXPECT_EQ(scene.argocd.reads().total(), reads);
  });
}

TEST(Reporter, PostsOnlyWhatChanged) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 100});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(101));
    scene.put({.revision = "r2", .resources = 100, .other_content = {{42, 7}}});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(103));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 101), ElementsAre("web", "c-42"));
    EXPECT_EQ(scene.platform.reports()[102].source("revision"), "r2");
    EXPECT_EQ(scene.platform.reports()[102].source("commitMessage"), "commit r2");
  });
}

TEST(Reporter, ASlowApplicationHoldsUpNoOther) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.argocd.delay_answers(std::chrono::hours(1), "/applications/slow/");
    scene.put({.name = "slow", .resources = 1});
    CO_ASSERT_TRUE(co_await Scene::until(
        [&] { return scene.argocd.count("GET", "/applications/slow/") > 0; }));
    for (int i = 0; i < 20; ++i) scene.put({.name = "app-" + std::to_string(i), .resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(40));
    EXPECT_THAT(scene.events("Application"), SizeIs(20));
    EXPECT_THAT(scene.events("Application"), Not(Contains("slow")));
    scene.argocd.end_faults();
    CO_ASSERT_OK(co_await scene.argocd.restart());
    CO_ASSERT_TRUE(co_await scene.wait_for_events(42));
  });
}

// Git and the managed cluster were away while Argo CD's controller started.
TEST(Reporter, AFailedComparisonDeletesNothing) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp app{.resources = 3};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    auto failed = app.application();
    failed["status"]["resources"] = json::array();
    failed["status"]["sync"]["status"] = "Unknown";
    failed["status"]["conditions"] = {{{"type", "ComparisonError"}, {"message", "no Git"}},
                                      {{"type", "UnknownError"}, {"message", "no cluster"}}};
    scene.argocd.set_tree(app.name, {{"nodes", json::array()}});
    scene.argocd.set_managed_resources(app.name, json::array());
    scene.kube.put(k8s::resources::kApplications, failed);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 4), ElementsAre("web"));
    EXPECT_THAT(scene.platform.reports()[4].data["errors"].dump(), HasSubstr("no cluster"));
    // Compared again, it lacks one for good.
    scene.put({.resources = 2});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(7));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 5), ElementsAre("web", "c-2 gone"));
  });
}

// Argo CD's answers change before the Application, and a look at the resource tree may come between.
TEST(Reporter, AnswersThatAreAheadOfTheApplicationDeleteNothing) {
  auto options = Scene::fast_options();
  options.reporter.sweep = std::chrono::milliseconds(50);
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    SampleApp app{.resources = 2};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    const auto reads = scene.argocd.reads().managed;
    scene.argocd.set_managed_resources(app.name, json::array());
    scene.argocd.set_tree(app.name, {{"nodes", json::array()}});
    CO_ASSERT_TRUE(co_await Scene::until([&] { return scene.argocd.reads().managed > reads; }));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.platform.reports().size(), 3U);
    // Then the Application says that they are gone.
    app.resources = 0;
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(6));
    EXPECT_THAT(scene.events("ConfigMap", 3), UnorderedElementsAre("c-0 gone", "c-1 gone"));
  });
}

// A restart in the middle of it knows no more.
TEST(Reporter, WhatAFailedComparisonHidesIsDueAgainAfterARestart) {
  const test::TempDir folder;
  auto options = Scene::fast_options();
  options.ledger.path = (folder / "ledger.db").string();
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    SampleApp app{.resources = 1};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    auto failed = app.application();
    failed["status"]["conditions"] = {{{"type", "ComparisonError"}, {"message", "no Git"}}};
    scene.kube.put(k8s::resources::kApplications, failed);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    EXPECT_TRUE(co_await scene.is_quiet());
    co_await scene.stop_reporter();
    const auto reads = scene.argocd.reads().tree;
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await Scene::until([&] { return scene.argocd.reads().tree > reads; }));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.platform.reports().size(), 3U);
  });
}

TEST(Reporter, WithoutATreeNoResourceIsReported) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.argocd.fail_next(1'000'000, 500, {}, "/resource-tree");
    scene.put({.resources = 2});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events(), ElementsAre("web"));
    scene.argocd.end_faults();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    EXPECT_THAT(scene.events("ConfigMap"), UnorderedElementsAre("c-0", "c-1"));
  });
}

// As the default backend of an ingress answers.
TEST(Reporter, WithoutArgoCdsSettingsNothingIsKnown) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start_doubles();
    scene.argocd.fail_next(1'000'000, 404, {}, "/api/version");
    scene.put({.resources = 2});
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(
        co_await Scene::until([&] { return scene.argocd.count("GET", "/api/version") > 5; }));
    EXPECT_THAT(scene.not_ready("argocd"), HasSubstr("404"));
    EXPECT_THAT(scene.events(), IsEmpty());
    scene.argocd.end_faults();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    EXPECT_EQ(scene.not_ready("argocd"), "");
  });
}

// A repository so large that its fetch takes longer than any answer may take.
TEST(Reporter, AHungReadOfCommitsSilencesNoApplication) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.argocd.delay_answers(std::chrono::hours(1), "/revisions/");
    for (int i = 0; i < 20; ++i) {
      scene.put(
          {.name = "app-" + std::to_string(i), .uid = "uid-" + std::to_string(i), .resources = 1});
    }
    const auto begin = Clock::now();
    CO_ASSERT_TRUE(
        co_await scene.platform.wait_for_count(40, deadline_after(std::chrono::minutes(5))));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(60));
    EXPECT_THAT(scene.events("Application"), SizeIs(20));
    EXPECT_EQ(scene.not_ready("argocd"), "");
    // They share every attempt, and so its failure.
    EXPECT_LE(scene.argocd.reads().revisions, 6U);
    scene.argocd.end_faults();
    CO_ASSERT_OK(co_await scene.argocd.restart());
    const auto* complete = co_await scene.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.object.dump().contains("commit r1");
        },
        deadline_after(std::chrono::minutes(10)));
    EXPECT_NE(complete, nullptr);
  });
}

TEST(Reporter, AHungTreeSilencesNoApplication) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    scene.argocd.delay_answers(std::chrono::hours(1), "/resource-tree");
    scene.put({.revision = "r2", .sync_status = "OutOfSync", .resources = 0});
    CO_ASSERT_TRUE(
        co_await scene.platform.wait_for_count(3, deadline_after(std::chrono::seconds(30))));
    EXPECT_EQ(scene.events().back(), "web");
    EXPECT_EQ(scene.platform.reports().back().source("syncStatus"), "OutOfSync");
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.platform.reports().size(), 3U) << "nothing is gone";
    scene.argocd.end_faults();
    CO_ASSERT_OK(co_await scene.argocd.restart());
    CO_ASSERT_TRUE(
        co_await scene.platform.wait_for_count(4, deadline_after(std::chrono::minutes(10))));
    EXPECT_EQ(scene.events().back(), "c-0 gone");
  });
}

TEST(Reporter, ManySlowApplicationsHoldUpNoOther) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.argocd.delay_answers(std::chrono::hours(1), "/applications/slow-");
    for (int i = 0; i < 40; ++i) {
      scene.put(
          {.name = "slow-" + std::to_string(i), .uid = "uid-" + std::to_string(i), .resources = 1});
    }
    // Each has been tried once; from now on they have their place.
    CO_ASSERT_TRUE(co_await Scene::until(
        [&] { return scene.metric("gitops_event_reporter_slow_objects") == 40; }));
    for (int i = 0; i < 30; ++i) {
      const auto before = Clock::now();
      const auto seen = scene.platform.find("ConfigMap", "c-0").size();
      scene.put({.resources = 1,
                 .content = i,
                 .metadata = {{"labels", {{"content", std::to_string(i)}}}}});
      CO_ASSERT_TRUE(co_await Scene::until(
          [&] { return scene.platform.find("ConfigMap", "c-0").size() > seen; }));
      EXPECT_LT(Clock::now() - before, std::chrono::seconds(1)) << i;
    }
    EXPECT_THAT(scene.status(), HasSubstr("8 of 8 workers for them in use"));
  });
}

// They are new, so nothing is known of them yet.
TEST(Reporter, SlowApplicationsThatAreFirstInTheQueueLeaveItSoon) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start_doubles();
    scene.argocd.delay_answers(std::chrono::hours(1), "/applications/slow-");
    for (int i = 0; i < 40; ++i) {
      scene.put(
          {.name = "slow-" + std::to_string(i), .uid = "uid-" + std::to_string(i), .resources = 1});
    }
    scene.put({.name = "well", .resources = 1});
    co_await scene.start_reporter();
    const auto begin = Clock::now();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(3));
    EXPECT_THAT(scene.events("Application"), ElementsAre("well"));
  });
}

TEST(Reporter, ASupersededStateNeedsNoManagedResources) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    const auto reads = scene.argocd.reads().managed;
    // So long that the second state comes before the next attempt with the first one.
    scene.platform.fail_next(1, 503, std::chrono::seconds(2));
    scene.put({.revision = "r2", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await Scene::until([&] { return !scene.not_ready("platform").empty(); }));
    scene.put({.revision = "r3", .resources = 1, .content = 3});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    EXPECT_EQ(scene.argocd.reads().managed, reads + 2) << "of the first attempt and of r3";
  });
}

TEST(Reporter, AResourceThatIsRemovedIsReportedAsGone) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 3});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    scene.put({.revision = "r2", .resources = 2});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(6));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 4), ElementsAre("web", "c-2 gone"));
    EXPECT_EQ(scene.platform.reports()[5].source("desiredManifest"), "");
  });
}

TEST(Reporter, ADeletedApplicationIsReportedWithItsResources) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp app{.resources = 2};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    const auto reads = scene.argocd.reads().total();
    scene.remove(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(6));
    EXPECT_EQ(scene.events("", 3)[0], "web gone");
    EXPECT_THAT(scene.events("ConfigMap", 3), UnorderedElementsAre("c-0 gone", "c-1 gone"));
    EXPECT_EQ(scene.argocd.reads().total(), reads);
  });
}

TEST(Reporter, AnApplicationThatVanishedDuringACutIsReportedByName) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp app{.resources = 1};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    scene.kube.cut_watches();
    scene.remove(app);
    scene.kube.compact();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_THAT(scene.events("", 2), ElementsAre("web gone", "c-0 gone"));
  });
}

TEST(Reporter, AnApplicationMadeAnewIsReportedGoneAndThenNew) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    scene.remove({});
    scene.put({.uid = "uid-2", .resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(6));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 2), ElementsAre("web gone", "c-0 gone", "web", "c-0"));
    EXPECT_EQ(scene.platform.reports()[5].source("appUID"), "uid-2");
  });
}

TEST(Reporter, APlatformOutageLosesNothing) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.platform.fail_next(30, 503);
    for (int i = 0; i < 8; ++i) scene.put({.name = "app-" + std::to_string(i), .resources = 2});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(24));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("Application"), SizeIs(8));
    EXPECT_THAT(scene.events("ConfigMap"), SizeIs(16));
    EXPECT_EQ(scene.not_ready("platform"), "");
    EXPECT_EQ(
        scene.metric("gitops_event_reporter_errors_total{code=\"unavailable\",peer=\"platform\"}"),
        30);
  });
}

// 404 is also what tells that an Application to be read is gone.
TEST(Reporter, AnEventEndpointThatIsNotFoundLosesNothing) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.platform.fail_next(12, 404);
    scene.put({.resources = 2});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    EXPECT_THAT(scene.events(), UnorderedElementsAre("web", "c-0", "c-1"));
  });
}

TEST(Reporter, ARefusedEventDoesNotHoldUpTheOthersAndComesBack) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.platform.fail_next(1, 413);
    scene.put({.resources = 1});
    scene.put({.name = "other", .resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_THAT(scene.events("Application"), UnorderedElementsAre("web", "other"));
    EXPECT_EQ(scene.platform.count("POST"), 5U);
    EXPECT_GE(scene.log->count("413"), 1U);
  });
}

// However long its own attempts have taken.
TEST(Reporter, TheFirstToComeIsTheProbeOfThePlatform) {
  auto options = Scene::fast_options();
  options.reporter.queue.backoff = {.initial = std::chrono::minutes(60),
                                    .max = std::chrono::minutes(60)};
  options.delivery.max_attempts = 1;
  options.delivery.breaker.failures = 1;
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.platform.fail_next(3, 503);
    scene.put({.name = "web", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    EXPECT_THAT(scene.events(), ElementsAre("web"));
  });
}

TEST(Reporter, WhatWaitedForThePlatformGoesOutWhenItTakesEventsAgain) {
  auto options = Scene::fast_options();
  options.reporter.queue.backoff = {.initial = std::chrono::minutes(60),
                                    .max = std::chrono::minutes(60)};
  options.delivery.max_attempts = 1;
  options.delivery.breaker.failures = 2;
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.platform.fail_next(2, 503);
    scene.put({.name = "waits", .resources = 0});
    CO_ASSERT_TRUE(co_await Scene::until([&] { return scene.platform.requests().size() == 1; }));
    scene.put({.name = "works", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    EXPECT_THAT(scene.events(), ElementsAre("works", "waits"));
  });
}

TEST(Reporter, RetryAfterIsHonoured) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.platform.fail_next(1, 429, std::chrono::seconds(1));
    scene.put({.resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    const auto& requests = scene.platform.requests();
    CO_ASSERT_EQ(requests.size(), 2U);
    EXPECT_GE(requests[1].when - requests[0].when, std::chrono::seconds(1));
  });
}

TEST(Reporter, NothingIsLostWhenTheQueueIsFull) {
  auto options = Scene::fast_options();
  options.reporter.queue.capacity = 2;
  options.reporter.queue.workers = 1;
  options.reporter.queue.dirty.bytes = 3000;  // most texts are read from the API server again
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start_doubles();
    for (int i = 0; i < 30; ++i) scene.put({.name = "app-" + std::to_string(i), .resources = 1});
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(60));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("Application"), SizeIs(30));
    EXPECT_EQ(scene.platform.reports().size(), 60U);
  });
}

TEST(Reporter, TheNewestStateOfAnApplicationIsItsLastReport) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    for (int content = 1; content <= 20; ++content) {
      scene.put({.revision = "r1",
                 .resources = 1,
                 .content = content,
                 .metadata = {{"labels", {{"content", std::to_string(content)}}}}});
    }
    const auto* last = co_await scene.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.kind() == "ConfigMap" && report.object["data"]["content"] == "20";
        },
        deadline_after(std::chrono::seconds(5)));
    CO_ASSERT_TRUE(last != nullptr);
    EXPECT_TRUE(co_await scene.is_quiet());
    int before = 0;
    for (const auto* report : scene.platform.find("Application", "web")) {
      const int content =
          std::stoi(report->object["metadata"]["labels"]["content"].get<std::string>());
      EXPECT_GT(content, before);
      before = content;
    }
    EXPECT_EQ(before, 20);
  });
}

TEST(Reporter, ResourcesGoWithTheNewestStateAlone) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    // So long that the second state comes before the next attempt with the first one.
    scene.platform.fail_next(1, 503, std::chrono::seconds(2));
    scene.put({.revision = "r2", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await Scene::until([&] { return !scene.not_ready("platform").empty(); }));
    scene.put({.revision = "r3", .resources = 1, .content = 3});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 2), ElementsAre("web", "web", "c-0"));
    const auto& last = scene.platform.reports().back();
    EXPECT_EQ(last.object["data"]["content"], "3");
    EXPECT_EQ(last.source("revision"), "r3");
  });
}

TEST(Reporter, ArgoCdAwayMeansNotReadyAndNothingLost) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    co_await scene.argocd.stop();
    scene.put({.revision = "r2", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await Scene::until([&] { return !scene.not_ready("argocd").empty(); }));
    CO_ASSERT_OK(scene.argocd.start());
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_THAT(scene.events("", 2), ElementsAre("web", "c-0"));
    EXPECT_EQ(scene.not_ready("argocd"), "");
  });
}

TEST(Reporter, AC24_OneApplicationThatArgoCdCannotDescribeStopsNoOther) {
  auto options = Scene::fast_options();
  options.reporter.application.patience = 2;
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    // Argo CD does not know this one; its own event goes out all the same, without resources.
    const SampleApp unknown{.name = "unknown", .resources = 2};
    scene.kube.put(k8s::resources::kApplications, unknown.application());
    // Of this one it tells nonsense.
    SampleApp odd{.name = "odd", .resources = 1};
    scene.put(odd);
    scene.argocd.set_managed_resources("odd", json{{"not", "an array"}});
    scene.argocd.set_tree("odd", json::array({1, 2}));
    scene.put({.resources = 2});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_THAT(scene.events("ConfigMap"), Contains("c-1"));
    EXPECT_THAT(scene.events("Application"), Contains("unknown"));
    // It is told as soon as it makes sense.
    scene.put(odd);
    const auto* healed = co_await scene.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.kind() == "ConfigMap" && report.source("appName") == "odd" &&
                 !report.source("actualManifest").empty();
        },
        deadline_after(std::chrono::seconds(5)));
    EXPECT_NE(healed, nullptr);
  });
}

// Its end may be hours away, when a finalizer waits for something.
TEST(Reporter, AResourceThatGoesBeforeItsApplicationIsToldAlsoAfterAFailedRead) {
  for (const int status : {500, 404}) {
    play([status](Scene& scene) -> Task<> {
      co_await scene.start();
      scene.put({.resources = 2});
      CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
      EXPECT_TRUE(co_await scene.is_quiet());
      scene.argocd.fail_next(1, status, {}, "/managed-resources");
      scene.put({.resources = 1,
                 .metadata = {{"deletionTimestamp", "2026-03-04T09:15:27Z"},
                              {"finalizers", {"resources-finalizer.argocd.argoproj.io"}}}});
      CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
      EXPECT_TRUE(co_await scene.is_quiet());
      // An application that Argo CD does not know has no resources to be told of.
      EXPECT_EQ(std::ranges::count(scene.events("ConfigMap", 3), "c-1 gone"),
                status == 500 ? 1 : 0);
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

  void put(Scene& scene) const {
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
    scene.argocd.set_tree("web", {{"nodes", nodes}});
    scene.argocd.set_managed_resources("web", items);
    auto app = SampleApp{.resources = 0}.application();
    app["metadata"]["annotations"]["content"] = std::to_string(content);
    app["status"]["resources"] = entries;
    scene.kube.put(k8s::resources::kApplications, app);
  }
};

// "namespace/name content", each once, of events from index `first` on.
std::set<std::string> told(const Scene& scene, std::size_t first) {
  std::set<std::string> out;
  for (std::size_t i = first; i < scene.platform.reports().size(); ++i) {
    const auto& report = scene.platform.reports()[i];
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
    auto options = Scene::fast_options();
    options.argocd_answer = limit;
    options.reporter.application.whole_below = 0;
    play(options, [](Scene& scene) -> Task<> {
      co_await scene.start();
      LargeApp app;
      app.put(scene);
      CO_ASSERT_TRUE(co_await scene.wait_for_events(8));
      EXPECT_TRUE(co_await scene.is_quiet());
      EXPECT_EQ(scene.events().front(), "web");
      EXPECT_EQ(told(scene, 0),
                (std::set<std::string>{"shop/a 1", "shop/b 1", "shop/c 1", "team/a 1", "team/b 1",
                                       "team/c 1", "shop/web 1"}));
      // A change, and the end of a resource.
      app.content = 2;
      app.places.erase(app.places.begin());
      app.put(scene);
      CO_ASSERT_TRUE(co_await scene.wait_for_events(16));
      EXPECT_TRUE(co_await scene.is_quiet());
      EXPECT_EQ(told(scene, 8),
                (std::set<std::string>{"shop/a gone", "shop/b 2", "shop/c 2", "team/a 2",
                                       "team/b 2", "team/c 2", "shop/web 2"}));
      EXPECT_EQ(scene.platform.reports().size(), 16U) << "each event once";
      EXPECT_TRUE(scene.ledger().known().at("argocd/web").change) << "nothing is due";
    });
  }
}

// One resource alone is too large.
TEST(Reporter, WhatFitsIsReportedOfAnApplicationWithAResourceThatDoesNot) {
  auto options = Scene::fast_options();
  options.argocd_answer = 5'000;
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    LargeApp app;
    app.too_large = "team/a";
    app.put(scene);
    CO_ASSERT_TRUE(co_await Scene::until([&] { return told(scene, 0).size() == 6; }));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(told(scene, 0), (std::set<std::string>{"shop/a 1", "shop/b 1", "shop/c 1", "team/b 1",
                                                     "team/c 1", "shop/web 1"}));
    EXPECT_THAT(scene.events("Application"), ElementsAre("web"));
    EXPECT_FALSE(scene.ledger().known().at("argocd/web").change) << "it is still due";
  });
}

// The state before it is told without Argo CD's answers, too, and brings no pause of minutes.
TEST(Reporter, TheNewestStateDoesNotWaitBehindOneThatArgoCdDoesNotDescribe) {
  auto options = Scene::fast_options();
  options.reporter.application.gap_retry = std::chrono::minutes(5);
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    EXPECT_TRUE(co_await scene.is_quiet());
    scene.argocd.fail_next(100'000, 500, {}, "/applications/web/");
    scene.put({.sync_status = "OutOfSync", .resources = 1});
    scene.put({.revision = "r2", .resources = 1});
    const auto* newest = co_await scene.platform.wait_for(
        [](const test::FakePlatform::Report& report) {
          return report.kind() == "Application" &&
                 report.object["status"]["sync"]["revision"] == "r2";
        },
        deadline_after(std::chrono::seconds(30)));
    EXPECT_NE(newest, nullptr);
    EXPECT_THAT(scene.events("", 2), ElementsAre("web", "web"));
  });
}

TEST(Reporter, AC26_ReportsOnlyItsShardAndItsNamespaces) {
  auto options = Scene::fast_options();
  options.reporter.changes.replicas = 3;
  options.shard = 2;
  options.reporter.application_namespaces = {"team-*"};
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start_doubles();
    for (const auto* ns : {"argocd", "team-a", "foreign"}) {
      for (int i = 0; i < 6; ++i) {  // app-0, app-3 and app-5 belong to shard 2 of 3
        scene.put(
            {.name = "app-" + std::to_string(i), .ns = ns, .controller = "argocd", .resources = 0});
      }
    }
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(6));
    EXPECT_TRUE(co_await scene.is_quiet());
    std::vector<std::string> seen;
    for (const auto* report : scene.platform.find("Application", "")) {
      seen.push_back(report->object["metadata"]["namespace"].get<std::string>() + "/" +
                     report->name());
    }
    EXPECT_THAT(seen, UnorderedElementsAre("argocd/app-0", "argocd/app-3", "argocd/app-5",
                                           "team-a/app-0", "team-a/app-3", "team-a/app-5"));
  });
}

TEST(Reporter, AMarkOfAParentThatDoesNotExistHidesNothing) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start_doubles();
    scene.kube.put(k8s::resources::kConfigMaps,
                   {{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", {{"name", "argocd-cm"}, {"namespace", "argocd"}}},
                    {"data", {{"application.resourceTrackingMethod", "label"}}}});
    scene.put({.resources = 0,
               .metadata = {{"labels", {{"app.kubernetes.io/instance", "some-helm-release"}}}}});
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    EXPECT_EQ(scene.platform.reports()[0].source("appName"), "");
    EXPECT_EQ(scene.platform.reports()[0].source("trackingMethod"), "label");
  });
}

TEST(Reporter, AChildApplicationIsReportedAsItsParentsResource) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start_doubles();
    scene.put({.name = "apps", .uid = "uid-apps", .resources = 0});
    const json mark = {
        {"argocd.argoproj.io/tracking-id", "apps:argoproj.io/Application:argocd/web"}};
    const SampleApp child{.resources = 0, .metadata = {{"annotations", mark}}};
    scene.argocd.set_managed_resources("apps", json::array({{{"group", "argoproj.io"},
                                                             {"kind", "Application"},
                                                             {"namespace", "argocd"},
                                                             {"name", "web"},
                                                             {"targetState", R"({"desired":true})"},
                                                             {"liveState", "null"}}}));
    scene.put(child);
    co_await scene.start_reporter();
    const auto* report = co_await scene.platform.wait_for(
        [](const test::FakePlatform::Report& candidate) { return candidate.name() == "web"; },
        deadline_after(std::chrono::seconds(3)));
    CO_ASSERT_TRUE(report != nullptr);
    EXPECT_EQ(report->source("appName"), "apps");
    EXPECT_EQ(report->source("appUID"), "uid-apps");
    EXPECT_EQ(report->source("desiredManifest"), R"({"desired":true})");
  });
}

TEST(Reporter, OnlyTheChildIsReadOfItsParentsManagedResources) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start_doubles();
    scene.put({.name = "apps", .uid = "uid-apps", .resources = 3});
    scene.put({.resources = 0,
               .metadata = {{"annotations",
                             {{"argocd.argoproj.io/tracking-id",
                               "apps:argoproj.io/Application:argocd/web"}}}}});
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    EXPECT_EQ(scene.argocd.count("GET",
                                 "/applications/apps/managed-resources?appNamespace=argocd&"
                                 "project=default&group=argoproj.io&kind=Application&"
                                 "namespace=argocd&name=web"),
              1U);
  });
}

TEST(Reporter, WithoutItsParentAChildIsReportedAsARootApplication) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start_doubles();
    const SampleApp parent{.name = "apps", .uid = "uid-apps", .resources = 0};
    scene.put(parent);
    scene.put({.resources = 0,
               .metadata = {{"annotations",
                             {{"argocd.argoproj.io/tracking-id",
                               "apps:argoproj.io/Application:argocd/web"}}}}});
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    EXPECT_EQ(scene.platform.find("Application", "web")[0]->source("appName"), "apps");
    EXPECT_TRUE(co_await scene.is_quiet());
    scene.remove(parent);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    CO_ASSERT_EQ(scene.platform.find("Application", "web").size(), 2U);
    EXPECT_EQ(scene.platform.find("Application", "web")[1]->source("appName"), "");
    EXPECT_NE(scene.platform.find("Application", "web")[1]->source("actualManifest"), "");
  });
}

TEST(Reporter, AChildIsReportedAsTheResourceOfAParentThatIsMadeLater) {
  const test::TempDir folder;
  auto options = Scene::fast_options();
  options.ledger.path = (folder / "ledger.db").string();
  play(options, [](Scene& scene) -> Task<> {
    const SampleApp parent{.name = "apps", .uid = "uid-apps", .resources = 0};
    co_await scene.start();
    scene.put({.resources = 0,
               .metadata = {{"annotations",
                             {{"argocd.argoproj.io/tracking-id",
                               "apps:argoproj.io/Application:argocd/web"}}}}});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    EXPECT_EQ(scene.platform.reports()[0].source("appName"), "");
    scene.put(parent);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    EXPECT_EQ(scene.platform.find("Application", "web").back()->source("appUID"), "uid-apps");
    // Also when it is made anew while nobody watches.
    co_await scene.stop_reporter();
    scene.remove(parent);
    auto again = parent;
    again.uid = "uid-again";
    scene.put(again);
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await Scene::until([&] {
      return scene.platform.find("Application", "web").back()->source("appUID") == "uid-again";
    }));
    EXPECT_TRUE(co_await scene.is_quiet());
    const auto reads = scene.argocd.reads().total();
    co_await scene.stop_reporter();
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await Scene::until([&] { return scene.not_ready("applications").empty(); }));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.argocd.reads().total(), reads) << "a restart reads none of them";
  });
}

TEST(Reporter, ARotatedArgoCdTokenIsPickedUp) {
  play([](Scene& scene) -> Task<> {
    const auto put_token = [&scene](const std::string& token) {
      scene.kube.put_secret({"argocd", "argocd-token"}, {{"token", token}});
      scene.argocd.set_token(token);
    };
    scene.argocd_token_secret = "argocd-token";
    co_await scene.start_doubles();
    put_token("first.token.x");
    co_await scene.start_reporter();
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    put_token("second.token.x");
    scene.put({.resources = 1, .content = 2, .metadata = {{"labels", {{"touched", "yes"}}}}});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_EQ(scene.not_ready("argocd"), "");
  });
}

TEST(Reporter, StatusShowsWhereItStands) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.platform.fail_next(1, 503);
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    const auto status = scene.status();
    EXPECT_THAT(status, HasSubstr("applications: 1\n"));
    EXPECT_THAT(status, HasSubstr("last acknowledgement: 20"));
    EXPECT_THAT(status, HasSubstr("last error of platform: 20"));
    EXPECT_THAT(status, HasSubstr("503"));
  });
}

// -- what the ledger is for --

Scene::Options with_ledger(const test::TempDir& folder) {
  auto options = Scene::fast_options();
  options.ledger.path = (folder / "ledger.db").string();
  return options;
}

TEST(Reporter, AnUnchangedRestartReadsAndReportsNothing) {
  const test::TempDir folder;
  play(with_ledger(folder), [](Scene& scene) -> Task<> {
    co_await scene.start();
    for (int i = 0; i < 20; ++i) scene.put({.name = "web-" + std::to_string(i), .resources = 2});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(60));
    co_await scene.stop_reporter();
    const auto reads = scene.argocd.reads().total();
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await Scene::until([&] { return scene.not_ready("argocd").empty(); }));
    CO_ASSERT_TRUE(co_await Scene::until([&] { return scene.not_ready("applications").empty(); }));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.platform.reports().size(), 60U);
    EXPECT_EQ(scene.argocd.reads().total(), reads);
  });
}

TEST(Reporter, WhatChangedWhileItWasDownIsReportedAndNothingElse) {
  const test::TempDir folder;
  play(with_ledger(folder), [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.name = "same", .uid = "uid-same", .resources = 2});
    scene.put({.name = "web", .resources = 3});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(7));
    co_await scene.stop_reporter();
    scene.put({.name = "web", .revision = "r2", .resources = 3, .other_content = {{1, 7}}});
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(9));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 7), ElementsAre("web", "c-1"));
  });
}

TEST(Reporter, WhatWasDeletedWhileItWasDownIsReportedAsGone) {
  const test::TempDir folder;
  play(with_ledger(folder), [](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp app{.resources = 2};
    scene.put(app);
    scene.put({.name = "stays", .uid = "uid-stays", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    co_await scene.stop_reporter();
    scene.remove(app);
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(7));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.events("", 4)[0], "web gone");
    EXPECT_THAT(scene.events("ConfigMap", 4), UnorderedElementsAre("c-0 gone", "c-1 gone"));
  });
}

TEST(Reporter, WhatWasMadeAnewWhileItWasDownIsReportedGoneAndThenNew) {
  const test::TempDir folder;
  play(with_ledger(folder), [](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp app{.resources = 1};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    co_await scene.stop_reporter();
    scene.remove(app);
    scene.put({.uid = "uid-2", .resources = 1});
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(6));
    EXPECT_THAT(scene.events("", 2), ElementsAre("web gone", "c-0 gone", "web", "c-0"));
  });
}

TEST(Reporter, ASignOfLifeComesWhenThereIsNothingToReport) {
  auto options = Scene::fast_options();
  options.reporter.queue.heartbeat = std::chrono::milliseconds(1500);
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 2});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_THAT(scene.events("", 3), ElementsAre("web"));
  });
}

TEST(Reporter, AResourceThatChangesWithoutAWriteToItsApplicationIsFound) {
  auto options = Scene::fast_options();
  options.reporter.sweep = std::chrono::milliseconds(100);
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp app{.resources = 2};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    auto tree = app.tree();
    tree["nodes"][1]["health"] = {{"status", "Degraded"}, {"message", "no space"}};
    scene.argocd.set_tree(app.name, tree);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    const auto found = scene.platform.find("ConfigMap", "c-1");
    EXPECT_EQ(found.back()->source("healthStatus"), "Degraded");
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 3), UnorderedElementsAre("web", "c-1"));
  });
}

TEST(Reporter, EveryStateOfAnotherMilestoneIsReportedWhileAllIsWell) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    CO_ASSERT_TRUE(co_await Scene::until([&] { return scene.not_ready("applications").empty(); }));
    for (int i = 0; i < 8; ++i) {
      scene.put({.revision = i % 2 == 0 ? "r1" : "r2",
                 .sync_status = i % 2 == 0 ? "OutOfSync" : "Synced",
                 .resources = 0});
    }
    CO_ASSERT_TRUE(co_await scene.wait_for_events(8));
  });
}

TEST(Reporter, AnApplicationOfAnotherArgoCdIsNotReported) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    auto foreign = SampleApp{.name = "foreign", .uid = "uid-f", .resources = 0}.application();
    foreign["status"]["controllerNamespace"] = "other-argocd";
    scene.kube.put(k8s::resources::kApplications, foreign);
    scene.put({.name = "own", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events(), ElementsAre("own"));
  });
}

// Several Argo CDs may serve the namespaces of teams; a new Application names none yet.
TEST(Reporter, AnApplicationOfATeamWaitsUntilItsArgoCdIsKnown) {
  auto options = Scene::fast_options();
  options.reporter.application_namespaces = {"team-*"};
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    auto ours = SampleApp{.name = "ours", .ns = "team-a", .uid = "uid-o", .resources = 0};
    auto anothers = SampleApp{.name = "anothers", .ns = "team-a", .uid = "uid-a", .resources = 0};
    scene.put(ours);
    scene.put(anothers);
    scene.put({.name = "own", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events(), ElementsAre("own"));
    anothers.controller = "other-argocd";
    scene.put(anothers);
    ours.controller = "argocd";
    scene.put(ours);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events(), ElementsAre("own", "ours"));
  });
}

TEST(Reporter, AnApplicationThatAnotherArgoCdTakesOverIsTakenBack) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    SampleApp app{.resources = 1};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    app.controller = "other-argocd";
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    app.sync_status = "OutOfSync";
    scene.put(app);
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 2), ElementsAre("web gone", "c-0 gone"));
    EXPECT_EQ(scene.ledger().known().size(), 0U);
  });
}

TEST(Reporter, ANewRevisionResendsEveryResourceWhereThatIsAskedFor) {
  auto options = Scene::fast_options();
  options.reporter.application.resend_on_revision = true;
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 3});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    scene.put({.revision = "r2", .resources = 3});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(8));
  });
}

// -- shards --

// app-0 belongs to shard 2 of 3, app-1 to 0, app-2 to 1.
Scene::Options of_three(std::uint32_t shard) {
  auto options = Scene::fast_options();
  options.reporter.changes.replicas = 3;
  options.shard = shard;
  return options;
}

TEST(Reporter, AShardThatIsTakenOverIsReportedAndOneThatIsReleasedIsNot) {
  play(of_three(0), [](Scene& scene) -> Task<> {
    co_await scene.start();
    for (int i = 0; i < 3; ++i) {
      const auto number = std::to_string(i);
      scene.put({.name = "app-" + number, .uid = "uid-" + number, .resources = 0});
    }
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events(), ElementsAre("app-1"));
    scene.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    EXPECT_THAT(scene.events("", 1), ElementsAre("app-0"));
    scene.reporter().changes().released(2);
    CO_ASSERT_TRUE(co_await Scene::until([&] { return !scene.reporter().changes().busy(2); }));
    scene.put({.name = "app-0", .uid = "uid-0", .revision = "r2", .resources = 0});
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.platform.reports().size(), 2U);
  });
}

TEST(Reporter, ADeletionInAShardThatIsTakenOverAfterwardsIsReported) {
  play(of_three(0), [](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp foreign{.name = "app-0", .resources = 0};
    scene.put(foreign);
    scene.put({.name = "app-1", .uid = "uid-1", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    scene.remove(foreign);
    EXPECT_TRUE(co_await scene.is_quiet());
    scene.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    EXPECT_THAT(scene.events("", 1), ElementsAre("app-0 gone"));
  });
}

TEST(Reporter, TheDeletionOfWhatItReportedIsReportedAlsoWhenItsShardIsAnothers) {
  play(of_three(0), [](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp foreign{.name = "app-0", .resources = 1};
    scene.put(foreign);
    scene.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    scene.reporter().changes().released(2);
    scene.remove(foreign);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_THAT(scene.events("", 2), ElementsAre("app-0 gone", "c-0 gone"));
  });
}

// Who holds the shard now may never have heard of the resource.
TEST(Reporter, AResourceThatItReportedIsReportedGoneAlsoWhenTheShardIsAnothers) {
  play(of_three(0), [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.name = "app-0", .resources = 2});
    scene.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    scene.reporter().changes().released(2);
    scene.put({.name = "app-0", .revision = "r2", .resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 3), ElementsAre("c-1 gone"));
  });
}

// It was reported by a replica that is no more, and so is its ledger.
TEST(Reporter, WhatGoesWhileAReplicaIsScaledAwayIsReportedGoneByTheOthers) {
  const test::TempDir folder;
  auto options = of_three(0);
  options.ledger.path = (folder / "ledger.db").string();
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp deleted{.name = "app-0", .uid = "uid-0", .resources = 2};
    scene.put(deleted);
    scene.put({.name = "app-2", .uid = "uid-2", .resources = 2});
    scene.put({.name = "app-1", .uid = "uid-1", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    co_await scene.stop_reporter();
    scene.remove(deleted);
    scene.put({.name = "app-2", .uid = "uid-2", .resources = 1});
    scene.options.reporter.changes.replicas = 1;
    scene.options.term = 0;
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(8));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 1), UnorderedElementsAre("app-1", "app-2", "c-0", "c-1 gone",
                                                          "app-0 gone", "c-0 gone", "c-1 gone"));
    EXPECT_EQ(scene.ledger().inventory().size(), 0U) << "all is its own now";
  });
}

// This one reported the application once, and another one a resource that came later.
TEST(Reporter, WhatOthersAddedToWhatItReportedIsReportedGoneToo) {
  play(of_three(2), [](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp with_another{.name = "app-0", .uid = "uid-0", .resources = 2};
    scene.put({.name = "app-0", .uid = "uid-0", .resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    scene.reporter().changes().released(2);
    scene.put(with_another);
    CO_ASSERT_TRUE(co_await Scene::until([&] { return !scene.ledger().inventory().empty(); }));
    scene.remove(with_another);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    EXPECT_THAT(scene.events("", 2), UnorderedElementsAre("app-0 gone", "c-0 gone", "c-1 gone"));
    CO_ASSERT_TRUE(co_await Scene::until([&] { return scene.ledger().known().empty(); }));
    EXPECT_FALSE(scene.ledger().inventory().empty()) << "told once more in its next term";
  });
}

// The replica that reported it is dead when a resource goes, and stays so.
TEST(Reporter, AResourceThatGoesBeforeAShardIsTakenOverIsReportedGone) {
  play(of_three(0), [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.name = "app-0", .uid = "uid-0", .resources = 2});
    scene.put({.name = "app-1", .uid = "uid-1", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    scene.put({.name = "app-0", .uid = "uid-0", .resources = 1});
    scene.put({.name = "app-1", .uid = "uid-1", .revision = "r2", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    scene.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    EXPECT_THAT(scene.events("", 2), UnorderedElementsAre("app-0", "c-0", "c-1 gone"));
  });
}

TEST(Reporter, AfterSomebodyElseReportedAShardAllOfItIsReportedAnew) {
  const test::TempDir folder;
  auto options = of_three(2);
  options.ledger.path = (folder / "ledger.db").string();
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.name = "app-0", .resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    scene.reporter().changes().released(2);
    scene.reporter().changes().claimed(2, 2);  // nobody in between
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.platform.reports().size(), 2U);
    scene.reporter().changes().released(2);
    scene.reporter().changes().claimed(2, 4);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_THAT(scene.events("", 2), ElementsAre("app-0", "c-0"));
  });
}

// An attempt without an acknowledgement may have arrived all the same.
TEST(Reporter, WhatMayHaveBeenReportedIsReportedGone) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    scene.platform.forget_requests();
    scene.platform.fail_next(1'000'000, 503);
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await Scene::until([&] { return !scene.platform.requests().empty(); }));
    scene.remove({});
    CO_ASSERT_TRUE(co_await Scene::until([&] {
      return std::ranges::any_of(scene.platform.requests(), [](const auto& request) {
        const auto id = request.headers.find("X-Event-Id").value_or("");
        return id.contains("/application/") && id.ends_with("/gone");
      });
    }));
    scene.platform.end_faults();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    EXPECT_THAT(scene.events("", 1), ElementsAre("web gone", "c-0 gone"));
  });
}

// The control plane has a state whose acknowledgement got lost; then all is as it was before.
TEST(Reporter, AStateThatCameBackIsReportedWhenTheOneBetweenMayHaveArrived) {
  const test::TempDir folder;
  play(with_ledger(folder), [](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp app{.resources = 1};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    scene.platform.lose_answers([](const auto&) { return true; });
    scene.put({.sync_status = "OutOfSync", .resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    co_await scene.stop_reporter();
    scene.put(app);
    scene.platform.lose_answers(nullptr);
    const auto before = scene.platform.reports().size();
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(before + 1));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.platform.find("Application", "web").back()->source("syncStatus"), "Synced");
  });
}

// As when a commit is reverted before the deletion was acknowledged.
TEST(Reporter, AResourceThatCameBackIsReportedWhenItsDeletionMayHaveArrived) {
  const test::TempDir folder;
  play(with_ledger(folder), [](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp app{.resources = 2};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    scene.platform.lose_answers([](const auto& report) { return report.kind() != "Application"; });
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    EXPECT_EQ(scene.events("ConfigMap").back(), "c-1 gone");
    co_await scene.stop_reporter();
    scene.put(app);
    scene.platform.lose_answers(nullptr);
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(
        co_await Scene::until([&] { return scene.events("ConfigMap").back() == "c-1"; }));
  });
}

// One resourceVersion of the Application, three contents of its resource.
TEST(Reporter, AReturnToAnEarlierStateIsAnEventOfItsOwn) {
  auto options = Scene::fast_options();
  options.reporter.sweep = std::chrono::milliseconds(50);
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp app{.resources = 1};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    for (const auto* health : {"Degraded", "Healthy", "Degraded"}) {
      auto tree = app.tree();
      tree["nodes"][0]["health"] = {{"status", health}};
      scene.argocd.set_tree(app.name, tree);
      CO_ASSERT_TRUE(co_await Scene::until([&] {
        return scene.platform.find("ConfigMap", "c-0").back()->source("healthStatus") == health;
      }));
    }
    std::set<std::string> ids;
    std::uint64_t before = 0;
    for (const auto* report : scene.platform.find("ConfigMap", "c-0")) {
      EXPECT_TRUE(ids.insert(report->event_id).second) << report->event_id;
      EXPECT_GT(report->sequence, before);
      before = report->sequence;
    }
  });
}

// A retry, also by the next process, is the same event.
TEST(Reporter, AnEventKeepsItsIdUntilItIsAcknowledged) {
  const test::TempDir folder;
  play(with_ledger(folder), [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.platform.lose_answers([](const auto&) { return true; });
    scene.put({.resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    co_await scene.stop_reporter();
    const auto before = scene.platform.reports().size();
    scene.platform.lose_answers(nullptr);
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(before + 1));
    for (const auto& report : scene.platform.reports()) {
      EXPECT_EQ(report.event_id, scene.platform.reports()[0].event_id);
      EXPECT_EQ(report.sequence, scene.platform.reports()[0].sequence);
    }
  });
}

// No file takes a byte. A next process would repeat the sequences of events that nobody wrote down.
TEST(Reporter, NothingIsSentThatTheLedgerCannotRemember) {
  const test::TempDir folder;
  auto* const before = std::signal(SIGXFSZ, SIG_IGN);
  const auto limit = [](rlim_t bytes) {
    rlimit now{};
    ::getrlimit(RLIMIT_FSIZE, &now);
    now.rlim_cur = std::min(bytes, now.rlim_max);
    ::setrlimit(RLIMIT_FSIZE, &now);
  };
  play(with_ledger(folder), [&](Scene& scene) -> Task<> {
    co_await scene.start();
    limit(0);
    scene.put({.resources = 2});
    const bool held = co_await Scene::until([&] { return !scene.ledger().holds_events().empty(); });
    const bool quiet = co_await scene.is_quiet();
    const auto sent = scene.platform.requests().size();
    limit(RLIM_INFINITY);
    EXPECT_TRUE(held && quiet);
    EXPECT_EQ(sent, 0U);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    EXPECT_EQ(scene.ledger().holds_events(), "");
  });
  std::signal(SIGXFSZ, before);
}

// A list that lacks the application tells nothing about its end.
TEST(Reporter, ADeletionIsNeverOlderThanWhatWasReported) {
  auto options = Scene::fast_options();
  options.reporter.sweep = std::chrono::milliseconds(50);
  play(options, [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    // The watch is silent; a look at the resource tree finds the change.
    scene.kube.stall_watches(true);
    scene.put({.revision = "r2", .resources = 2});
    CO_ASSERT_TRUE(co_await Scene::until(
        [&] { return std::ranges::count(scene.events("ConfigMap"), "c-1") == 1; }));
    const auto sequence = scene.platform.find("Application", "web").back()->sequence;
    scene.remove({});
    scene.kube.compact();
    scene.kube.cut_watches();
    scene.kube.stall_watches(false);
    CO_ASSERT_TRUE(
        co_await Scene::until([&] { return scene.events("Application").back() == "web gone"; }));
    EXPECT_GT(scene.platform.find("Application", "web").back()->sequence, sequence);
  });
}

// It was made anew while nobody watched, and the new one went before any report of it.
TEST(Reporter, APredecessorIsReportedGoneAlsoWhenItsSuccessorNeverWasReported) {
  const test::TempDir folder;
  play(with_ledger(folder), [](Scene& scene) -> Task<> {
    co_await scene.start();
    const SampleApp app{.resources = 1};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    co_await scene.stop_reporter();
    scene.remove(app);
    scene.put({.uid = "uid-2", .resources = 1});
    scene.platform.forget_requests();
    scene.platform.fail_next(1'000'000, 503);
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await Scene::until([&] { return !scene.platform.requests().empty(); }));
    scene.remove(app);
    CO_ASSERT_TRUE(co_await Scene::until([&] {
      return std::ranges::any_of(scene.platform.requests(), [](const auto& request) {
        const auto id = request.headers.find("X-Event-Id").value_or("");
        return id.starts_with("uid-2/application/") && id.ends_with("/gone");
      });
    }));
    scene.platform.end_faults();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    EXPECT_THAT(scene.events("", 2), ElementsAre("web gone", "web gone", "c-0 gone"));
    EXPECT_TRUE(scene.platform.reports()[2].event_id.starts_with("uid-2/"));
    EXPECT_TRUE(scene.platform.reports()[3].event_id.starts_with("uid-1/"));
  });
}

// -- refused is not acknowledged --

// A proxy in the way that does not know where the events belong.
TEST(Reporter, ATimeOfRefusalsLosesNeitherChangesNorDeletions) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    const auto app = [](int number, std::string revision) {
      return SampleApp{.name = "app-" + std::to_string(number),
                       .uid = "uid-" + std::to_string(number),
                       .revision = std::move(revision),
                       .resources = 1};
    };
    for (int i = 0; i < 5; ++i) scene.put(app(i, "r1"));
    CO_ASSERT_TRUE(co_await scene.wait_for_events(10));
    scene.platform.forget_requests();
    scene.platform.fail_next(1'000'000, 400);
    for (int i = 0; i < 3; ++i) scene.put(app(i, "r2"));
    for (int i = 3; i < 5; ++i) scene.remove(app(i, "r1"));
    CO_ASSERT_TRUE(co_await Scene::until([&] {
      return !scene.not_ready("platform").empty() && scene.platform.requests().size() > 12;
    }));
    scene.platform.end_faults();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(17));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("Application", 10),
                UnorderedElementsAre("app-0", "app-1", "app-2", "app-3 gone", "app-4 gone"));
    EXPECT_THAT(scene.events("ConfigMap", 10), UnorderedElementsAre("c-0 gone", "c-0 gone"));
    EXPECT_EQ(scene.metric("gitops_event_reporter_refused_events"), 0);
  });
}

// Answers 422 to events whose id has this beginning and this end.
Task<> refuse(Scene& scene, std::string begin, std::string end) {
  scene.platform.refuse_events([begin, end](const test::FakePlatform::Report& report) {
    return report.event_id.starts_with(begin) && report.event_id.ends_with(end) ? 422 : 0;
  });
  co_return;
}

TEST(Reporter, ARefusedEventIsMarkedAndTriedOncePerStartAndOnCommand) {
  const test::TempDir folder;
  play(with_ledger(folder), [](Scene& scene) -> Task<> {
    co_await scene.start();
    co_await refuse(scene, "uid-1/:v1:ConfigMap:shop:c-1/", "");
    scene.put({.resources = 3});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    const auto marks = [&] { return scene.metric("gitops_event_reporter_refused_events"); };
    CO_ASSERT_TRUE(co_await Scene::until([&] { return marks() == 1; }));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events(), UnorderedElementsAre("web", "c-0", "c-2"));
    EXPECT_EQ(scene.not_ready("platform"), "");

    const auto posts = [&] { return scene.platform.count("POST"); };
    auto before = posts();
    scene.put({.revision = "r2", .resources = 3});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(posts(), before + 1) << "not tried while its content stays the same";

    before = posts();
    EXPECT_EQ(scene.reporter().changes().retry_refused(), 1U);
    CO_ASSERT_TRUE(co_await Scene::until([&] { return posts() == before + 1; }));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(posts(), before + 1) << "once";

    co_await scene.stop_reporter();
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await Scene::until([&] { return posts() == before + 2; }));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(posts(), before + 2) << "once per start";
    EXPECT_EQ(marks(), 1);

    scene.platform.refuse_events(nullptr);
    EXPECT_EQ(scene.reporter().changes().retry_refused(), 1U);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    EXPECT_EQ(scene.events().back(), "c-1");
    CO_ASSERT_TRUE(co_await Scene::until([&] { return marks() == 0; }));
  });
}

TEST(Reporter, ARefusedDeletionStaysInTheLedger) {
  const test::TempDir folder;
  play(with_ledger(folder), [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 1});
    scene.put({.name = "other", .uid = "uid-2", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    co_await refuse(scene, "uid-1/application/", "/gone");
    scene.remove({});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_EQ(scene.events().back(), "c-0 gone");
    CO_ASSERT_TRUE(co_await Scene::until(
        [&] { return scene.metric("gitops_event_reporter_refused_events") == 1; }));
    EXPECT_TRUE(scene.ledger().known().contains("argocd/web"));
    co_await scene.stop_reporter();
    scene.platform.refuse_events(nullptr);
    co_await scene.start_reporter();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    EXPECT_EQ(scene.events().back(), "web gone");
    CO_ASSERT_TRUE(
        co_await Scene::until([&] { return !scene.ledger().known().contains("argocd/web"); }));
    EXPECT_EQ(scene.metric("gitops_event_reporter_refused_events"), 0);
  });
}

TEST(Reporter, ARefusedDeletionIsKeptWhenTheApplicationIsMadeAnew) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.resources = 0});
    scene.put({.name = "other", .uid = "uid-o", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    co_await refuse(scene, "uid-1/application/", "/gone");
    scene.remove({});
    scene.put({.name = "other", .uid = "uid-o", .revision = "r2", .resources = 0});
    CO_ASSERT_TRUE(co_await Scene::until(
        [&] { return scene.metric("gitops_event_reporter_refused_events") == 1; }));
    scene.put({.uid = "uid-2", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_THAT(scene.events("", 2), UnorderedElementsAre("other", "web"));
    EXPECT_EQ(scene.metric("gitops_event_reporter_refused_events"), 1);
    scene.platform.refuse_events(nullptr);
    EXPECT_EQ(scene.reporter().changes().retry_refused(), 1U);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    EXPECT_EQ(scene.events().back(), "web gone");
    EXPECT_THAT(scene.platform.reports().back().event_id, testing::StartsWith("uid-1/"));
  });
}

// -- fencing --

TEST(Reporter, AReleaseEndsTheReportsOfItsShard) {
  play(of_three(2), [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.platform.delay_answers(std::chrono::hours(1));
    scene.put({.name = "app-0", .resources = 40});
    CO_ASSERT_TRUE(co_await Scene::until([&] { return scene.platform.requests().size() == 1; }));
    scene.reporter().changes().released(2);
    CO_ASSERT_TRUE(co_await Scene::until([&] { return !scene.reporter().changes().busy(2); }));
    scene.platform.delay_answers(std::chrono::milliseconds(0));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.platform.requests().size(), 1U) << "nothing after the release";
  });
}

// The receiver takes the later sequence, whichever arrives last.
TEST(Reporter, TheNextTermsEventsAreAboveTheFloor) {
  play(of_three(2), [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.name = "app-0", .resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    const auto far = scene.platform.reports()[1].sequence + 3'600'000'000ULL;
    scene.reporter().changes().released(2);
    scene.reporter().changes().claimed(2, 9, far);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(4));
    EXPECT_EQ(scene.platform.reports()[2].sequence, far);
    EXPECT_EQ(scene.platform.reports()[3].sequence, far);
    scene.reporter().changes().released(2);
    scene.remove({.name = "app-0"});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(6));
    EXPECT_EQ(scene.platform.reports()[4].sequence, far + 1) << "no owner, so just above its last";
    EXPECT_EQ(scene.platform.reports()[5].sequence, far + 1);
  });
}

// Its answers come when another term has begun and has distrusted the ledger.
TEST(Reporter, ALateReportDoesNotTouchTheLedgerOfTheNextTerm) {
  play(of_three(2), [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.name = "app-0", .resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    scene.platform.delay_answers(std::chrono::milliseconds(50));
    scene.put({.name = "app-0", .revision = "r2", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await Scene::until([&] { return scene.platform.requests().size() == 3; }));
    scene.reporter().changes().released(2);
    scene.reporter().changes().claimed(2, 9);
    scene.platform.delay_answers(std::chrono::milliseconds(0));
    CO_ASSERT_TRUE(co_await Scene::until([&] {
      const auto known = scene.ledger().known().find("argocd/app-0");
      return known != scene.ledger().known().end() && known->second.change;
    }));
    EXPECT_TRUE(co_await scene.is_quiet());
    // The new term reports all of it, whatever the old one wrote.
    const auto last = scene.platform.find("ConfigMap", "c-0").back();
    EXPECT_EQ(last->object["data"]["content"], "2");
    std::uint64_t highest = 0;
    for (const auto& report : scene.platform.reports()) {
      if (&report != last) highest = std::max(highest, report.sequence);
    }
    EXPECT_GE(last->sequence, highest);
  });
}

// -- epochs --

// etcd from a backup: every resourceVersion is lower than before.
TEST(Reporter, AfterARestoreOfTheClusterEverythingIsComparedAnew) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.name = "web", .resources = 1});
    scene.put({.name = "other", .uid = "uid-o", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    const auto backup = scene.kube.store().back_up();
    for (const auto* revision : {"r2", "r3", "r1", "r2", "r3"}) {
      scene.put({.name = "web", .revision = revision, .resources = 1});
      CO_ASSERT_TRUE(co_await Scene::until([&] {
        return scene.platform.find("Application", "web")
                   .back()
                   ->object["status"]["sync"]["revision"] == revision;
      }));
    }
    EXPECT_TRUE(co_await scene.is_quiet());
    const auto before = scene.platform.reports().size();
    const SampleApp then{.name = "web", .resources = 1};
    scene.argocd.set_managed_resources("web", then.managed());
    scene.kube.restore(backup);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(before + 1));
    EXPECT_EQ(scene.platform.reports().back().object["status"]["sync"]["revision"], "r1");
    scene.put({.name = "web", .revision = "r2", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(before + 3));
    EXPECT_EQ(scene.events().back(), "c-0");
  });
}

// etcd was restored while the watch stayed open, so nothing shows that versions are given out again.
TEST(Reporter, AStateThatLooksOlderThanOneThatWasReadIsNotLost) {
  play([](Scene& scene) -> Task<> {
    const auto backup = scene.kube.store().back_up();
    const auto put = [&scene](const std::string& uid) {
      scene.put({.name = "web", .uid = uid, .resources = 0});
      return *scene.kube.find(k8s::resources::kApplications, {"argocd", "web"});
    };
    const auto told = [&scene](const std::string& uid) {
      return Scene::until([&scene, uid] {
        return !scene.platform.reports().empty() &&
               scene.platform.reports().back().event_id.starts_with(uid + "/");
      });
    };
    co_await scene.start();
    const auto old = put("uid-old");
    CO_ASSERT_TRUE(co_await told("uid-old"));
    scene.kube.stall_watches(true);
    scene.remove({.name = "web"});
    for (int i = 0; i < 3; ++i) put("uid-new");
    // Reads the applications.
    scene.reporter().changes().claimed(0, 9);
    CO_ASSERT_TRUE(co_await told("uid-new"));

    scene.kube.store().restore(backup);
    const auto newest = put("uid-newest");
    scene.kube.stall_watches(false);
    scene.kube.send_on_watches(k8s::resources::kApplications,
                               json{{"type", "DELETED"}, {"object", old}}.dump() + "\n" +
                                   json{{"type", "ADDED"}, {"object", newest}}.dump() + "\n");
    EXPECT_TRUE(co_await told("uid-newest"));
  });
}

// -- a ledger that is lost while running --

TEST(Reporter, AfterTheLossOfTheLedgerEverythingIsReportedAgain) {
  const test::TempDir folder;
  const auto file = folder / "ledger.db";
  play(with_ledger(folder), [file](Scene& scene) -> Task<> {
    co_await scene.start();
    for (int i = 0; i < 60; ++i) {
      scene.put({.name = "app-" + std::to_string(i), .uid = "uid-" + std::to_string(i)});
    }
    CO_ASSERT_TRUE(co_await scene.wait_for_events(360));
    EXPECT_TRUE(co_await scene.is_quiet());
    std::uint64_t highest = 0;
    for (const auto& report : scene.platform.reports()) {
      highest = std::max(highest, report.sequence);
    }
    co_await scene.stop_reporter();
    {
      // Notes push the entries out of the pages' cache.
      LedgerFile ledger(file.string());
      CO_ASSERT_OK(ledger.open());
      LedgerBatch batch;
      for (int i = 0; i < 1000; ++i) {
        batch.notes["filler " + std::to_string(i)] = std::string(4096, 'x');
      }
      CO_ASSERT_TRUE(ledger.write(batch).has_value());
    }
    co_await scene.start_reporter();
    const auto size = std::filesystem::file_size(file);
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary) << std::string(size, '#');
    for (int i = 0; i < 60; ++i) {
      scene.put({.name = "app-" + std::to_string(i),
                 .uid = "uid-" + std::to_string(i),
                 .revision = i == 7 ? "r2" : "r1"});
    }
    CO_ASSERT_TRUE(co_await Scene::until(
        [&] { return scene.metric("gitops_event_reporter_ledger_rebuilt_total") == 1; }));
    CO_ASSERT_TRUE(co_await scene.wait_for_events(360 + 360));
    for (std::size_t i = 360; i < scene.platform.reports().size(); ++i) {
      EXPECT_GT(scene.platform.reports()[i].sequence, highest);
    }
  });
}

TEST(Reporter, AKillAfterTheFirstReportForgetsNothing) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.platform.fail_next(1'000'000, 503);
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await Scene::until([&] { return !scene.platform.requests().empty(); }));
    EXPECT_EQ(scene.metric("gitops_event_reporter_ledger_rows"), 1);
    EXPECT_EQ(scene.metric("gitops_event_reporter_ledger_pending_rows"), 0);
    scene.platform.end_faults();
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
  });
}

}  // namespace
}  // namespace gitops::reporter
