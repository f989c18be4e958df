// A control plane asks for the events of single Applications again.
#include "event-reporter/report/requested_reports.hpp"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event-reporter/report/play_reporter.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr const char* kServed = "gitops_event_reporter_requested_reports_total";

SampleApp app(const std::string& name, const std::string& revision = "r1") {
  return {.name = name, .uid = "uid-" + name, .revision = revision, .resources = 2};
}

// No event for longer than a request waits for its round.
Task<bool> is_quiet(ReporterFixture& fixture) {
  return fixture.platform.wait_until_quiet(std::chrono::seconds(2), test::soon());
}

// The sign of life of an idle reporter, which carries the answer, and what follows from it.
Task<> heartbeat(ReporterFixture& fixture) {
  const auto count = fixture.platform.reports().size();
  fixture.reporter().changes().send_heartbeat();
  CO_ASSERT_TRUE(co_await fixture.wait_for_events(count + 1));
  EXPECT_TRUE(co_await is_quiet(fixture));
}

// Reports two Applications with two resources each, then has the control plane send this head.
Task<> report_and_ask(ReporterFixture& fixture, const std::string& head) {
  co_await fixture.start();
  fixture.put(app("cart"));
  fixture.put(app("web"));
  CO_ASSERT_TRUE(co_await fixture.wait_for_events(6));
  EXPECT_TRUE(co_await is_quiet(fixture));
  fixture.platform.ask_again(head);
  co_await heartbeat(fixture);
}

// How often each object was reported from the seventh event on, without the sign of life itself.
std::map<std::string, int> reported_again(const ReporterFixture& fixture) {
  std::map<std::string, int> count;
  std::map<std::string, std::string> ids;
  const auto& reports = fixture.platform.reports();
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const auto object = reports[i].source("appName") + "/" + reports[i].name();
    const bool is_new = std::exchange(ids[object], reports[i].event_id) != reports[i].event_id;
    if (i >= 6 && is_new) ++count[object];
  }
  return count;
}

TEST(RequestedReports, AllEventsOfTheApplicationComeOnceWithNewIdsAndSequences) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_and_ask(fixture, "uid-web;7");
    EXPECT_THAT(reported_again(fixture),
                UnorderedElementsAre(Pair("/web", 1), Pair("web/c-0", 1), Pair("web/c-1", 1)));
    std::map<std::string, std::uint64_t> before;
    const auto& reports = fixture.platform.reports();
    for (std::size_t i = 0; i < reports.size(); ++i) {
      auto& last = before[reports[i].source("appName") + "/" + reports[i].name()];
      EXPECT_GE(reports[i].sequence, last);
      last = reports[i].sequence;
    }
    EXPECT_EQ(fixture.metric(kServed), 1);
  });
}

TEST(RequestedReports, ARepeatedRequestIsServedOnceAndALaterOneAgain) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_and_ask(fixture, "uid-web;7");
    for (int i = 0; i < 3; ++i) {
      co_await heartbeat(fixture);
    }
    EXPECT_EQ(fixture.metric(kServed), 1);
    for (const auto* head : {"uid-web;6", "uid-web;7"}) {
      fixture.platform.ask_again(head);
      co_await heartbeat(fixture);
      EXPECT_EQ(fixture.metric(kServed), 1) << head;
    }
    fixture.platform.ask_again("uid-web;8");
    co_await heartbeat(fixture);
    EXPECT_EQ(fixture.metric(kServed), 2);
    EXPECT_THAT(reported_again(fixture),
                UnorderedElementsAre(Pair("/web", 2), Pair("web/c-0", 2), Pair("web/c-1", 2)));
  });
}

TEST(RequestedReports, NothingFollowsFromAHeadThatNamesNoApplicationOfThisReporter) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_and_ask(fixture, "uid-nobody;1, uid-elsewhere;2");
    for (const auto* head : {"", "uid-web", "uid-web;x", "*;1", "uid-web;1, ;"}) {
      fixture.platform.ask_again(head);
      co_await heartbeat(fixture);
    }
    EXPECT_THAT(reported_again(fixture), IsEmpty());
    EXPECT_EQ(fixture.metric(kServed), 0);
  });
}

TEST(RequestedReports, AnApplicationThatAppearsLaterIsReportedWhenTheRequestIsRepeated) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_and_ask(fixture, "uid-late;3");
    EXPECT_EQ(fixture.metric(kServed), 0);
    fixture.put(app("late"));
    EXPECT_TRUE(co_await test::eventually([&] { return fixture.metric(kServed) == 1; },
                                          "the request, by the answers to its events"));
    EXPECT_TRUE(co_await is_quiet(fixture));
    EXPECT_THAT(reported_again(fixture),
                UnorderedElementsAre(Pair("/late", 2), Pair("late/c-0", 2), Pair("late/c-1", 2)));
  });
}

TEST(RequestedReports, AReportUnderWayEndsFirst) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_and_ask(fixture, "");
    fixture.platform.ask_again("uid-web;1");
    // The answer to the first event of this report asks while the resources are still due.
    fixture.put({.name = "web", .uid = "uid-web", .revision = "r2", .resources = 2, .content = 2});
    EXPECT_TRUE(
        co_await test::eventually([&] { return fixture.metric(kServed) == 1; }, "the request"));
    EXPECT_TRUE(co_await is_quiet(fixture));
    EXPECT_THAT(reported_again(fixture),
                UnorderedElementsAre(Pair("/web", 2), Pair("web/c-0", 2), Pair("web/c-1", 2)));
  });
}

// Its report stays due for as long as Argo CD does not tell the resources.
TEST(RequestedReports, AnApplicationWithALastingGapIsReportedAgainAsFarAsItIsKnown) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_and_ask(fixture, "");
    fixture.argocd.fail_next(1'000'000, 500, {}, "/applications/web/managed-resources");
    fixture.put({.name = "web", .uid = "uid-web", .revision = "r2", .resources = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(8));
    EXPECT_TRUE(co_await is_quiet(fixture));
    fixture.platform.ask_again("uid-web;1");
    fixture.put(app("cart", "r2"));
    EXPECT_TRUE(
        co_await test::eventually([&] { return fixture.metric(kServed) == 1; }, "the request"));
    EXPECT_TRUE(co_await is_quiet(fixture));
    EXPECT_EQ(reported_again(fixture)["/web"], 2);
  });
}

// Its heartbeat is set to an hour, and the control plane forgets a request after ten minutes.
TEST(RequestedReports, AnIdleReporterHearsOfARequestBeforeItExpires) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.platform.acknowledge_with("e:1", "");
    fixture.put(app("web"));
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    EXPECT_TRUE(co_await is_quiet(fixture));
    fixture.platform.ask_again("uid-web;1");
    CO_ASSERT_TRUE(
        co_await fixture.platform.wait_for_count(4, deadline_after(std::chrono::minutes(10))));
    EXPECT_TRUE(
        co_await test::eventually([&] { return fixture.metric(kServed) == 1; }, "the request"));
  });
}

TEST(RequestedReports, ARefusedEventIsTriedAgain) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const auto is_poison = [](const auto& report) { return report.name() == "c-0" ? 422 : 0; };
    fixture.platform.refuse_events(is_poison);
    fixture.put(app("web"));
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_TRUE(co_await is_quiet(fixture));
    fixture.platform.refuse_events(nullptr);
    fixture.platform.ask_again("uid-web;1");
    fixture.put(app("cart"));
    EXPECT_TRUE(co_await test::eventually(
        [&] {
          return !fixture.platform.find("ConfigMap", "c-0").empty() && fixture.metric(kServed) == 1;
        },
        "the refused event"));
    EXPECT_TRUE(co_await is_quiet(fixture));
    EXPECT_FALSE(fixture.platform.find("ConfigMap", "c-0").empty());
  });
}

}  // namespace
}  // namespace gitops::reporter
