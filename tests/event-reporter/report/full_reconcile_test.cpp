#include "event-reporter/report/full_reconcile.hpp"

#include <iostream>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event-reporter/report/reporter_fixture.hpp"
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

void play(const std::function<Task<>(ReporterFixture&)>& body) {
  const test::LogCapture quiet;
  test::run_in_test_time([&]() -> Task<> {
    auto options = ReporterFixture::fast_options();
    options.reporter.reconcile = kInterval;
    options.delivery.breaker.pauses = {.initial = seconds(1), .max = seconds(10)};
    ReporterFixture fixture(co_await asio::this_coro::executor, options);
    co_await fixture.start();
    co_await body(fixture);
    co_await fixture.stop();
    EXPECT_THAT(fixture.platform.refused(), IsEmpty());
  });
  if (::testing::Test::HasFailure()) std::cerr << quiet.text() << "\n";
}

Task<bool> put_apps(ReporterFixture& fixture, int apps) {
  for (int i = 0; i < apps; ++i) {
    fixture.put(
        {.name = "app-" + std::to_string(i), .uid = "uid-" + std::to_string(i), .resources = 1});
  }
  co_return co_await fixture.wait_for_events(static_cast<std::size_t>(2 * apps));
}

// How often each object was reported, from the event with this index on.
std::map<std::string, int> reported(const ReporterFixture& fixture, std::size_t first) {
  std::map<std::string, int> count;
  for (const auto* report : fixture.platform.find("", "", first)) {
    ++count[report->source("appName") + "/" + report->name()];
  }
  return count;
}

TEST(FullReconcile, EveryObjectIsReportedOnceInEachInterval) {
  play([](ReporterFixture& fixture) -> Task<> {
    constexpr int kApps = 20;
    CO_ASSERT_TRUE(co_await put_apps(fixture, kApps));
    co_await sleep_for(kInterval / 24 - seconds(5));
    EXPECT_EQ(fixture.platform.reports().size(), 2U * kApps) << "not right after the start";
    // Twice; a third time at the ends of the intervals.
    co_await sleep_for(2 * kInterval + seconds(10));
    const auto count = reported(fixture, 2 * kApps);
    EXPECT_EQ(count.size(), 2U * kApps);
    for (const auto& [object, times] : count) {
      EXPECT_GE(times, 2) << object;
      EXPECT_LE(times, 3) << object;
    }
    EXPECT_LE(fixture.metric("gitops_event_reporter_reconciled_total"), 2 * kApps + kApps / 4);
    // New events, so that the receiver takes them.
    std::set<std::string> ids;
    std::map<std::string, std::uint64_t> last;
    for (const auto& report : fixture.platform.reports()) {
      EXPECT_TRUE(ids.insert(report.event_id).second) << report.event_id;
      auto& sequence = last[report.source("appName") + "/" + report.name()];
      EXPECT_GT(report.sequence, sequence);
      sequence = report.sequence;
    }
  });
}

TEST(FullReconcile, TheObjectsAreSpreadOverTheInterval) {
  play([](ReporterFixture& fixture) -> Task<> {
    constexpr int kApps = 40;
    CO_ASSERT_TRUE(co_await put_apps(fixture, kApps));
    co_await sleep_for(kInterval / 24);
    const auto reported = [&] { return fixture.platform.find("Application", "").size(); };
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
  play([](ReporterFixture& fixture) -> Task<> {
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    fixture.platform.forget_every(1);
    fixture.put({.revision = "r2", .sync_status = "OutOfSync", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.platform.forgotten().size() == 2; }, "two forgotten objects"));
    fixture.platform.forget_every(0);
    CO_ASSERT_TRUE(
        co_await fixture.platform.wait_for_count(4, deadline_after(kInterval + kInterval / 12)));
    EXPECT_EQ(fixture.platform.reports()[2].source("syncStatus"), "OutOfSync");
    EXPECT_EQ(fixture.platform.reports()[3].object["data"]["content"], "2");
  });
}

TEST(FullReconcile, ItWaitsWhileTheControlPlaneTakesNoEventsAndMakesUpForItAfterwards) {
  play([](ReporterFixture& fixture) -> Task<> {
    constexpr int kApps = 10;
    CO_ASSERT_TRUE(co_await put_apps(fixture, kApps));
    co_await fixture.platform.stop();
    fixture.put({.name = "waits", .resources = 0});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.not_ready("platform").empty(); },
                                             "platform to be not ready"));
    co_await sleep_for(kInterval);
    EXPECT_EQ(fixture.metric("gitops_event_reporter_reconciled_total"), 0);
    const auto before = fixture.platform.reports().size();
    CO_ASSERT_OK(fixture.platform.start());
    CO_ASSERT_TRUE(
        co_await fixture.platform.wait_for_count(before + 1, deadline_after(minutes(1))));
    co_await sleep_for(minutes(1));
    EXPECT_GE(reported(fixture, before).size(), 2U * kApps);
  });
}

TEST(FullReconcile, ItWaitsWhileAnObjectIsInWork) {
  play([](ReporterFixture& fixture) -> Task<> {
    constexpr int kApps = 10;
    CO_ASSERT_TRUE(co_await put_apps(fixture, kApps));
    // Its reads take so long that it is in work, or waits for its place, all the time.
    fixture.argocd.delay_answers(seconds(9), "/applications/slow/");
    for (int i = 0; i < 30; ++i) {
      fixture.put(
          {.name = "slow", .resources = 0, .metadata = {{"labels", {{"i", std::to_string(i)}}}}});
      co_await sleep_for(seconds(8));
    }
    EXPECT_EQ(fixture.metric("gitops_event_reporter_reconciled_total"), 0);
    fixture.argocd.end_faults();
    co_await sleep_for(kInterval);
    EXPECT_GE(fixture.metric("gitops_event_reporter_reconciled_total"), kApps);
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
