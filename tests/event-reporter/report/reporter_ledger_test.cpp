// What the ledger is for: restarts, and events of which the answer is lost.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "event-reporter/ledger/ledger_file.hpp"
#include "event-reporter/report/play_reporter.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST(Reporter, AnUnchangedRestartReadsAndReportsNothing) {
  const test::TempDir folder;
  play(with_ledger(folder), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    for (int i = 0; i < 20; ++i) fixture.put({.name = "web-" + std::to_string(i), .resources = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(60));
    co_await fixture.stop_reporter();
    const auto reads = fixture.argocd.reads().total();
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.not_ready("argocd").empty(); },
                                             "argocd to be ready"));
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.not_ready("applications").empty(); }, "applications to be ready"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.reports().size(), 60U);
    EXPECT_EQ(fixture.argocd.reads().total(), reads);
  });
}

TEST(Reporter, WhatChangedWhileItWasDownIsReportedAndNothingElse) {
  const test::TempDir folder;
  play(with_ledger(folder), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.name = "same", .uid = "uid-same", .resources = 2});
    fixture.put({.name = "web", .resources = 3});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(7));
    co_await fixture.stop_reporter();
    fixture.put({.name = "web", .revision = "r2", .resources = 3, .other_content = {{1, 7}}});
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(9));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 7), ElementsAre("web", "c-1"));
  });
}

TEST(Reporter, WhatWasDeletedWhileItWasDownIsReportedAsGone) {
  const test::TempDir folder;
  play(with_ledger(folder), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 2};
    fixture.put(app);
    fixture.put({.name = "stays", .uid = "uid-stays", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    co_await fixture.stop_reporter();
    fixture.remove(app);
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(7));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.events("", 4)[0], "web gone");
    EXPECT_THAT(fixture.events("ConfigMap", 4), UnorderedElementsAre("c-0 gone", "c-1 gone"));
  });
}

TEST(Reporter, WhatWasRecreatedWhileItWasDownIsReportedGoneAndThenNew) {
  const test::TempDir folder;
  play(with_ledger(folder), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 1};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    co_await fixture.stop_reporter();
    fixture.remove(app);
    fixture.put({.uid = "uid-2", .resources = 1});
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(6));
    EXPECT_THAT(fixture.events("", 2), ElementsAre("web gone", "c-0 gone", "web", "c-0"));
  });
}

// An attempt without an acknowledgement may have arrived all the same.
TEST(Reporter, WhatMayHaveBeenReportedIsReportedGone) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    fixture.platform.forget_requests();
    fixture.platform.fail_next(1'000'000, 503);
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.platform.requests().empty(); },
                                             "a request to the platform"));
    fixture.remove({});
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          return std::ranges::any_of(fixture.platform.requests(), [](const auto& request) {
            const auto id = request.headers.find("X-Event-Id").value_or("");
            return id.contains("/application/") && id.ends_with("/gone");
          });
        },
        "a request about the deleted application"));
    fixture.platform.end_faults();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    EXPECT_THAT(fixture.events("", 1), ElementsAre("web gone", "c-0 gone"));
  });
}

// The control plane has a state whose acknowledgement got lost; then all is as it was before.
TEST(Reporter, AStateThatCameBackIsReportedWhenTheOneBetweenMayHaveArrived) {
  const test::TempDir folder;
  play(with_ledger(folder), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 1};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    fixture.platform.lose_answers([](const auto&) { return true; });
    fixture.put({.sync_status = "OutOfSync", .resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    co_await fixture.stop_reporter();
    fixture.put(app);
    fixture.platform.lose_answers(nullptr);
    const auto before = fixture.platform.reports().size();
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(before + 1));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.find("Application", "web").back()->source("syncStatus"), "Synced");
  });
}

// As when a commit is reverted before the deletion was acknowledged.
TEST(Reporter, AResourceThatCameBackIsReportedWhenItsDeletionMayHaveArrived) {
  const test::TempDir folder;
  play(with_ledger(folder), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 2};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    fixture.platform.lose_answers(
        [](const auto& report) { return report.kind() != "Application"; });
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_EQ(fixture.events("ConfigMap").back(), "c-1 gone");
    co_await fixture.stop_reporter();
    fixture.put(app);
    fixture.platform.lose_answers(nullptr);
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.events("ConfigMap").back() == "c-1"; }, "the event of c-1"));
  });
}

// One resourceVersion of the Application, three contents of its resource.
TEST(Reporter, AReturnToAnEarlierStateIsAnEventOfItsOwn) {
  auto options = ReporterFixture::fast_options();
  options.reporter.sweep = std::chrono::milliseconds(50);
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 1};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    for (const auto* health : {"Degraded", "Healthy", "Degraded"}) {
      auto tree = app.tree();
      tree["nodes"][0]["health"] = {{"status", health}};
      fixture.argocd.set_tree(app.name, tree);
      CO_ASSERT_TRUE(co_await test::eventually(
          [&] {
            return fixture.platform.find("ConfigMap", "c-0").back()->source("healthStatus") ==
                   health;
          },
          "the new health of c-0"));
    }
    std::set<std::string> ids;
    std::uint64_t before = 0;
    for (const auto* report : fixture.platform.find("ConfigMap", "c-0")) {
      EXPECT_TRUE(ids.insert(report->event_id).second) << report->event_id;
      EXPECT_GT(report->sequence, before);
      before = report->sequence;
    }
  });
}

// A retry, also by the next process, is the same event.
TEST(Reporter, AnEventKeepsItsIdUntilItIsAcknowledged) {
  const test::TempDir folder;
  play(with_ledger(folder), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.platform.lose_answers([](const auto&) { return true; });
    fixture.put({.resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    co_await fixture.stop_reporter();
    const auto before = fixture.platform.reports().size();
    fixture.platform.lose_answers(nullptr);
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(before + 1));
    for (const auto& report : fixture.platform.reports()) {
      EXPECT_EQ(report.event_id, fixture.platform.reports()[0].event_id);
      EXPECT_EQ(report.sequence, fixture.platform.reports()[0].sequence);
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
  play(with_ledger(folder), [&](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    limit(0);
    fixture.put({.resources = 2});
    const bool held =
        co_await test::eventually([&] { return !fixture.ledger().holds_events().empty(); },
                                  "a ledger entry that holds events");
    const bool quiet = co_await fixture.is_quiet();
    const auto sent = fixture.platform.requests().size();
    limit(RLIM_INFINITY);
    EXPECT_TRUE(held && quiet);
    EXPECT_EQ(sent, 0U);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    EXPECT_EQ(fixture.ledger().holds_events(), "");
  });
  std::signal(SIGXFSZ, before);
}

// A list that lacks the application tells nothing about its end.
TEST(Reporter, ADeletionIsNeverOlderThanWhatWasReported) {
  auto options = ReporterFixture::fast_options();
  options.reporter.sweep = std::chrono::milliseconds(50);
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    // The watch is silent; a look at the resource tree finds the change.
    fixture.kube.stall_watches(true);
    fixture.put({.revision = "r2", .resources = 2});
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return std::ranges::count(fixture.events("ConfigMap"), "c-1") == 1; },
        "the event of c-1"));
    const auto sequence = fixture.platform.find("Application", "web").back()->sequence;
    fixture.remove({});
    fixture.kube.compact();
    fixture.kube.cut_watches();
    fixture.kube.stall_watches(false);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.events("Application").back() == "web gone"; }, "the deletion of web"));
    EXPECT_GT(fixture.platform.find("Application", "web").back()->sequence, sequence);
  });
}

// It was recreated while nobody watched, and the new one went before any report of it.
TEST(Reporter, APredecessorIsReportedGoneAlsoWhenItsSuccessorNeverWasReported) {
  const test::TempDir folder;
  play(with_ledger(folder), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp app{.resources = 1};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    co_await fixture.stop_reporter();
    fixture.remove(app);
    fixture.put({.uid = "uid-2", .resources = 1});
    fixture.platform.forget_requests();
    fixture.platform.fail_next(1'000'000, 503);
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.platform.requests().empty(); },
                                             "a request to the platform"));
    fixture.remove(app);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          return std::ranges::any_of(fixture.platform.requests(), [](const auto& request) {
            const auto id = request.headers.find("X-Event-Id").value_or("");
            return id.starts_with("uid-2/application/") && id.ends_with("/gone");
          });
        },
        "a request about the deleted application"));
    fixture.platform.end_faults();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_THAT(fixture.events("", 2), ElementsAre("web gone", "web gone", "c-0 gone"));
    EXPECT_TRUE(fixture.platform.reports()[2].event_id.starts_with("uid-2/"));
    EXPECT_TRUE(fixture.platform.reports()[3].event_id.starts_with("uid-1/"));
  });
}

TEST(Reporter, AfterTheLossOfTheLedgerEverythingIsReportedAgain) {
  const test::TempDir folder;
  const auto file = folder / "ledger.db";
  play(with_ledger(folder), [file](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    for (int i = 0; i < 60; ++i) {
      fixture.put({.name = "app-" + std::to_string(i), .uid = "uid-" + std::to_string(i)});
    }
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(360));
    EXPECT_TRUE(co_await fixture.is_quiet());
    std::uint64_t highest = 0;
    for (const auto& report : fixture.platform.reports()) {
      highest = std::max(highest, report.sequence);
    }
    co_await fixture.stop_reporter();
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
    co_await fixture.start_reporter();
    const auto size = std::filesystem::file_size(file);
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary) << std::string(size, '#');
    for (int i = 0; i < 60; ++i) {
      fixture.put({.name = "app-" + std::to_string(i),
                   .uid = "uid-" + std::to_string(i),
                   .revision = i == 7 ? "r2" : "r1"});
    }
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.metric("gitops_event_reporter_ledger_rebuilt_total") == 1; },
        "a rebuilt ledger"));
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(360 + 360));
    for (std::size_t i = 360; i < fixture.platform.reports().size(); ++i) {
      EXPECT_GT(fixture.platform.reports()[i].sequence, highest);
    }
  });
}

TEST(Reporter, AKillAfterTheFirstReportForgetsNothing) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.platform.fail_next(1'000'000, 503);
    fixture.put({.resources = 1});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.platform.requests().empty(); },
                                             "a request to the platform"));
    EXPECT_EQ(fixture.metric("gitops_event_reporter_ledger_rows"), 1);
    EXPECT_EQ(fixture.metric("gitops_event_reporter_ledger_pending_rows"), 0);
    fixture.platform.end_faults();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
  });
}

}  // namespace
}  // namespace gitops::reporter
