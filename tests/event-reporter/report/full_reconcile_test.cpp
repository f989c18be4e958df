#include "event-reporter/report/full_reconcile.hpp"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scene.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::IsEmpty;

constexpr seconds kInterval = minutes(4);

void play(const std::function<Task<>(Scene&)>& body) {
  const test::LogCapture quiet;
  test::run_in_test_time([&]() -> Task<> {
    auto options = Scene::fast_options();
    options.reporter.reconcile = kInterval;
    options.delivery.breaker.pauses = {.initial = seconds(1), .max = seconds(10)};
    Scene scene(co_await asio::this_coro::executor, options);
    co_await scene.start();
    co_await body(scene);
    co_await scene.stop();
    EXPECT_THAT(scene.platform.refused(), IsEmpty());
  });
  if (::testing::Test::HasFailure()) std::cerr << quiet.text() << "\n";
}

Task<bool> put_apps(Scene& scene, int apps) {
  for (int i = 0; i < apps; ++i) {
    scene.put(
        {.name = "app-" + std::to_string(i), .uid = "uid-" + std::to_string(i), .resources = 1});
  }
  co_return co_await scene.wait_for_events(static_cast<std::size_t>(2 * apps));
}

// How often each object was reported, from the event with this index on.
std::map<std::string, int> reported(const Scene& scene, std::size_t first) {
  std::map<std::string, int> count;
  for (const auto* report : scene.platform.find("", "", first)) {
    ++count[report->source("appName") + "/" + report->name()];
  }
  return count;
}

TEST(FullReconcile, EveryObjectIsReportedOnceInEachInterval) {
  play([](Scene& scene) -> Task<> {
    constexpr int kApps = 20;
    CO_ASSERT_TRUE(co_await put_apps(scene, kApps));
    co_await sleep_for(kInterval / 24 - seconds(5));
    EXPECT_EQ(scene.platform.reports().size(), 2U * kApps) << "not right after the start";
    // Twice; a third time at the ends of the intervals.
    co_await sleep_for(2 * kInterval + seconds(10));
    const auto count = reported(scene, 2 * kApps);
    EXPECT_EQ(count.size(), 2U * kApps);
    for (const auto& [object, times] : count) {
      EXPECT_GE(times, 2) << object;
      EXPECT_LE(times, 3) << object;
    }
    EXPECT_LE(scene.metric("gitops_event_reporter_reconciled_total"), 2 * kApps + kApps / 4);
    // New events, so that the receiver takes them.
    std::set<std::string> ids;
    std::map<std::string, std::uint64_t> last;
    for (const auto& report : scene.platform.reports()) {
      EXPECT_TRUE(ids.insert(report.event_id).second) << report.event_id;
      auto& sequence = last[report.source("appName") + "/" + report.name()];
      EXPECT_GT(report.sequence, sequence);
      sequence = report.sequence;
    }
  });
}

TEST(FullReconcile, TheObjectsAreSpreadOverTheInterval) {
  play([](Scene& scene) -> Task<> {
    constexpr int kApps = 40;
    CO_ASSERT_TRUE(co_await put_apps(scene, kApps));
    co_await sleep_for(kInterval / 24);
    const auto reported = [&] { return scene.platform.find("Application", "").size(); };
    const auto begin = reported();
    for (int quarter = 0; quarter < 4; ++quarter) {
      const auto before = reported();
      co_await sleep_for(kInterval / 4);
      // By their names, 20 of them are due in the fullest quarter, wherever it begins.
      EXPECT_LE(reported() - before, 21U);
    }
    EXPECT_GE(reported() - begin, kApps - 1U);
  });
}

// For example an event that the control plane acknowledged and lost.
TEST(FullReconcile, WhatTheLedgerDoesNotKnowHeals) {
  play([](Scene& scene) -> Task<> {
    scene.put({.resources = 1});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    scene.platform.forget_every(1);
    scene.put({.revision = "r2", .sync_status = "OutOfSync", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return scene.platform.forgotten().size() == 2; },
                                             "two forgotten objects"));
    scene.platform.forget_every(0);
    CO_ASSERT_TRUE(
        co_await scene.platform.wait_for_count(4, deadline_after(kInterval + kInterval / 12)));
    EXPECT_EQ(scene.platform.reports()[2].source("syncStatus"), "OutOfSync");
    EXPECT_EQ(scene.platform.reports()[3].object["data"]["content"], "2");
  });
}

TEST(FullReconcile, ItWaitsWhileTheControlPlaneTakesNoEventsAndMakesUpForItAfterwards) {
  play([](Scene& scene) -> Task<> {
    constexpr int kApps = 10;
    CO_ASSERT_TRUE(co_await put_apps(scene, kApps));
    co_await scene.platform.stop();
    scene.put({.name = "waits", .resources = 0});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !scene.not_ready("platform").empty(); },
                                             "platform to be not ready"));
    co_await sleep_for(kInterval);
    EXPECT_EQ(scene.metric("gitops_event_reporter_reconciled_total"), 0);
    const auto before = scene.platform.reports().size();
    CO_ASSERT_OK(scene.platform.start());
    CO_ASSERT_TRUE(co_await scene.platform.wait_for_count(before + 1, deadline_after(minutes(1))));
    co_await sleep_for(minutes(1));
    EXPECT_GE(reported(scene, before).size(), 2U * kApps);
  });
}

TEST(FullReconcile, ItWaitsWhileAnObjectIsInWork) {
  play([](Scene& scene) -> Task<> {
    constexpr int kApps = 10;
    CO_ASSERT_TRUE(co_await put_apps(scene, kApps));
    // Its reads take so long that it is in work, or waits for its place, all the time.
    scene.argocd.delay_answers(seconds(9), "/applications/slow/");
    for (int i = 0; i < 30; ++i) {
      scene.put(
          {.name = "slow", .resources = 0, .metadata = {{"labels", {{"i", std::to_string(i)}}}}});
      co_await sleep_for(seconds(8));
    }
    EXPECT_EQ(scene.metric("gitops_event_reporter_reconciled_total"), 0);
    scene.argocd.end_faults();
    co_await sleep_for(kInterval);
    EXPECT_GE(scene.metric("gitops_event_reporter_reconciled_total"), kApps);
  });
}

TEST(FullReconcile, AnObjectsPlaceFollowsFromItsKey) {
  const auto place = reconcile_place("argocd/web", kInterval);
  EXPECT_EQ(place, reconcile_place("argocd/web", kInterval));
  EXPECT_NE(place, reconcile_place("argocd/api", kInterval));
  EXPECT_GE(place, milliseconds(0));
  EXPECT_LT(place, kInterval);
}

}  // namespace
}  // namespace gitops::reporter
