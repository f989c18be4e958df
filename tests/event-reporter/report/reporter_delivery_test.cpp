// What is reported while the control plane takes no events, or refuses them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event-reporter/report/play_reporter.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(Reporter, APlatformOutageLosesNothing) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.platform.fail_next(30, 503);
    for (int i = 0; i < 8; ++i) fixture.put({.name = "app-" + std::to_string(i), .resources = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(24));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("Application"), SizeIs(8));
    EXPECT_THAT(fixture.events("ConfigMap"), SizeIs(16));
    EXPECT_EQ(fixture.not_ready("platform"), "");
    EXPECT_EQ(fixture.metric(
                  "gitops_event_reporter_errors_total{code=\"unavailable\",peer=\"platform\"}"),
              30);
  });
}

// 404 is also what tells that an Application to be read is gone.
TEST(Reporter, AnEventEndpointThatIsNotFoundLosesNothing) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.platform.fail_next(12, 404);
    fixture.put({.resources = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    EXPECT_THAT(fixture.events(), UnorderedElementsAre("web", "c-0", "c-1"));
  });
}

TEST(Reporter, ARefusedEventDoesNotHoldUpTheOthersAndComesBack) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.platform.fail_next(1, 413);
    fixture.put({.resources = 1});
    fixture.put({.name = "other", .resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_THAT(fixture.events("Application"), UnorderedElementsAre("web", "other"));
    EXPECT_EQ(fixture.platform.count("POST"), 5U);
    EXPECT_GE(fixture.log->count("413"), 1U);
  });
}

// However long its own attempts have taken.
TEST(Reporter, TheFirstToComeIsTheProbeOfThePlatform) {
  auto options = ReporterFixture::fast_options();
  options.reporter.queue.backoff = {.initial = std::chrono::minutes(60),
                                    .max = std::chrono::minutes(60)};
  options.delivery.max_attempts = 1;
  options.delivery.breaker.failures = 1;
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.platform.fail_next(3, 503);
    fixture.put({.name = "web", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_THAT(fixture.events(), ElementsAre("web"));
  });
}

TEST(Reporter, WhatWaitedForThePlatformGoesOutWhenItTakesEventsAgain) {
  auto options = ReporterFixture::fast_options();
  options.reporter.queue.backoff = {.initial = std::chrono::minutes(60),
                                    .max = std::chrono::minutes(60)};
  options.delivery.max_attempts = 1;
  options.delivery.breaker.failures = 2;
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.platform.fail_next(2, 503);
    fixture.put({.name = "waits", .resources = 0});
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.platform.requests().size() == 1; }, "the first request"));
    fixture.put({.name = "works", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_THAT(fixture.events(), ElementsAre("works", "waits"));
  });
}

TEST(Reporter, RetryAfterIsHonoured) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.platform.fail_next(1, 429, std::chrono::seconds(1));
    fixture.put({.resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    const auto& requests = fixture.platform.requests();
    CO_ASSERT_EQ(requests.size(), 2U);
    EXPECT_GE(requests[1].when - requests[0].when, std::chrono::seconds(1));
  });
}

// -- refused is not acknowledged --

// A proxy in the way that does not know where the events belong.
TEST(Reporter, ATimeOfRefusalsLosesNeitherChangesNorDeletions) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const auto app = [](int number, std::string revision) {
      return SampleApp{.name = "app-" + std::to_string(number),
                       .uid = "uid-" + std::to_string(number),
                       .revision = std::move(revision),
                       .resources = 1};
    };
    for (int i = 0; i < 5; ++i) fixture.put(app(i, "r1"));
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(10));
    fixture.platform.forget_requests();
    fixture.platform.fail_next(1'000'000, 400);
    for (int i = 0; i < 3; ++i) fixture.put(app(i, "r2"));
    for (int i = 3; i < 5; ++i) fixture.remove(app(i, "r1"));
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          return !fixture.not_ready("platform").empty() && fixture.platform.requests().size() > 12;
        },
        "a platform that is not ready after more than 12 requests"));
    fixture.platform.end_faults();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(17));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("Application", 10),
                UnorderedElementsAre("app-0", "app-1", "app-2", "app-3 gone", "app-4 gone"));
    EXPECT_THAT(fixture.events("ConfigMap", 10), UnorderedElementsAre("c-0 gone", "c-0 gone"));
    EXPECT_EQ(fixture.metric("gitops_event_reporter_refused_events"), 0);
  });
}

// Answers 422 to events whose id has this beginning and this end.
Task<> refuse(ReporterFixture& fixture, std::string begin, std::string end) {
  fixture.platform.refuse_events([begin, end](const test::FakePlatform::Report& report) {
    return report.event_id.starts_with(begin) && report.event_id.ends_with(end) ? 422 : 0;
  });
  co_return;
}

TEST(Reporter, ARefusedEventIsMarkedAndTriedOncePerStartAndOnCommand) {
  const test::TempDir folder;
  play(with_ledger(folder), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    co_await refuse(fixture, "uid-1/:v1:ConfigMap:shop:c-1/", "");
    fixture.put({.resources = 3});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    const auto marks = [&] { return fixture.metric("gitops_event_reporter_refused_events"); };
    CO_ASSERT_TRUE(co_await test::eventually([&] { return marks() == 1; }, "one refused event"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events(), UnorderedElementsAre("web", "c-0", "c-2"));
    EXPECT_EQ(fixture.not_ready("platform"), "");

    const auto posts = [&] { return fixture.platform.count("POST"); };
    auto before = posts();
    fixture.put({.revision = "r2", .resources = 3});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(posts(), before + 1) << "not tried while its content stays the same";

    before = posts();
    EXPECT_EQ(fixture.reporter().changes().retry_refused(), 1U);
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return posts() == before + 1; }, "one more request"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(posts(), before + 1) << "once";

    co_await fixture.stop_reporter();
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return posts() == before + 2; }, "two more requests"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(posts(), before + 2) << "once per start";
    EXPECT_EQ(marks(), 1);

    fixture.platform.refuse_events(nullptr);
    EXPECT_EQ(fixture.reporter().changes().retry_refused(), 1U);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_EQ(fixture.events().back(), "c-1");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return marks() == 0; }, "no refused event"));
  });
}

TEST(Reporter, ARefusedDeletionStaysInTheLedger) {
  const test::TempDir folder;
  play(with_ledger(folder), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 1});
    fixture.put({.name = "other", .uid = "uid-2", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    co_await refuse(fixture, "uid-1/application/", "/gone");
    fixture.remove({});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_EQ(fixture.events().back(), "c-0 gone");
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.metric("gitops_event_reporter_refused_events") == 1; },
        "one refused event in the metrics"));
    EXPECT_TRUE(fixture.ledger().known().contains("argocd/web"));
    co_await fixture.stop_reporter();
    fixture.platform.refuse_events(nullptr);
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_EQ(fixture.events().back(), "web gone");
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return !fixture.ledger().known().contains("argocd/web"); },
                                  "a ledger without argocd/web"));
    EXPECT_EQ(fixture.metric("gitops_event_reporter_refused_events"), 0);
  });
}

TEST(Reporter, ARefusedDeletionIsKeptWhenTheApplicationIsRecreated) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 0});
    fixture.put({.name = "other", .uid = "uid-o", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    co_await refuse(fixture, "uid-1/application/", "/gone");
    fixture.remove({});
    fixture.put({.name = "other", .uid = "uid-o", .revision = "r2", .resources = 0});
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.metric("gitops_event_reporter_refused_events") == 1; },
        "one refused event in the metrics"));
    fixture.put({.uid = "uid-2", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_THAT(fixture.events("", 2), UnorderedElementsAre("other", "web"));
    EXPECT_EQ(fixture.metric("gitops_event_reporter_refused_events"), 1);
    fixture.platform.refuse_events(nullptr);
    EXPECT_EQ(fixture.reporter().changes().retry_refused(), 1U);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_EQ(fixture.events().back(), "web gone");
    EXPECT_THAT(fixture.platform.reports().back().event_id, testing::StartsWith("uid-1/"));
  });
}

}  // namespace
}  // namespace gitops::reporter
