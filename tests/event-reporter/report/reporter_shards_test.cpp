// Shards that change hands, and clusters that are restored.

#include <algorithm>
#include <ranges>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event-reporter/report/play_reporter.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST(Reporter, AShardThatIsTakenOverIsReportedAndOneThatIsReleasedIsNot) {
  play(of_three(0), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    for (int i = 0; i < 3; ++i) {
      const auto number = std::to_string(i);
      fixture.put({.name = "app-" + number, .uid = "uid-" + number, .resources = 0});
    }
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events(), ElementsAre("app-1"));
    fixture.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_THAT(fixture.events("", 1), ElementsAre("app-0"));
    fixture.reporter().changes().released(2);
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.reporter().changes().busy(2); },
                                             "the end of the work"));
    fixture.put({.name = "app-0", .uid = "uid-0", .revision = "r2", .resources = 0});
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.reports().size(), 2U);
  });
}

// The former holder's watch was ahead of this one, and told the deletion.
TEST(Reporter, WhatTheWatchStillDeliversFromBeforeATakeOverIsNotTold) {
  play(of_three(0), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const auto without = fixture.kube.store().back_up();
    fixture.put({.name = "app-0", .uid = "uid-0", .resources = 0});
    auto state = *fixture.kube.find(k8s::resources::kApplications, {"argocd", "app-0"});
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return fixture.reporter().applications().size() == 1; },
                                  "the expected number of applications"));
    // It is deleted, and the watch does not deliver that yet.
    fixture.kube.store().restore(without);
    for (int i = 0; i < 5; ++i) fixture.put({.name = "app-1", .uid = "uid-1", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    const auto reads = [&fixture] {
      return std::ranges::count_if(fixture.kube.requests(), [](const auto& request) {
        return request.target.ends_with("/applications/app-0");
      });
    };
    const auto until_read = [&](std::ptrdiff_t count) {
      return test::eventually(
          [&, count] { return reads() == count || fixture.platform.reports().size() > 1; },
          "the expected number of reads");
    };
    fixture.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await until_read(1));
    const auto deliver = [&fixture, &state](const char* type, const char* sync_status) {
      state["status"]["sync"]["status"] = sync_status;
      state["metadata"]["resourceVersion"] =
          std::to_string(std::stoull(state["metadata"]["resourceVersion"].get<std::string>()) + 1);
      fixture.kube.send_on_watches(k8s::resources::kApplications,
                                   json{{"type", type}, {"object", state}}.dump() + "\n");
    };
    deliver("MODIFIED", "OutOfSync");
    CO_ASSERT_TRUE(co_await until_read(2));
    deliver("MODIFIED", "Unknown");
    CO_ASSERT_TRUE(co_await until_read(3));
    EXPECT_EQ(fixture.platform.reports().size(), 1U);
    deliver("DELETED", "Unknown");
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_THAT(fixture.events("", 1), ElementsAre("app-0 gone"));
  });
}

TEST(Reporter, ADeletionInAShardThatIsTakenOverAfterwardsIsReported) {
  play(of_three(0), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp foreign{.name = "app-0", .resources = 0};
    fixture.put(foreign);
    fixture.put({.name = "app-1", .uid = "uid-1", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    fixture.remove(foreign);
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_THAT(fixture.events("", 1), ElementsAre("app-0 gone"));
  });
}

TEST(Reporter, TheDeletionOfWhatItReportedIsReportedAlsoWhenItsShardIsHeldByAnother) {
  play(of_three(0), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp foreign{.name = "app-0", .resources = 1};
    fixture.put(foreign);
    fixture.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    fixture.reporter().changes().released(2);
    fixture.remove(foreign);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_THAT(fixture.events("", 2), ElementsAre("app-0 gone", "c-0 gone"));
  });
}

// Which comes and goes while the deletion of its predecessor is being reported.
TEST(Reporter, TheDeletionOfASuccessorThatItNeverReportedIsNotReported) {
  play(of_three(0), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    SampleApp app{.name = "app-1", .uid = "uid-1", .resources = 0};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.reporter().changes().released(0);
    fixture.platform.delay_answers(std::chrono::milliseconds(100));
    const auto requests = fixture.platform.requests().size();
    app.uid = "uid-2";
    fixture.put(app);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.platform.requests().size() > requests; }, "another request"));
    fixture.remove(app);
    fixture.platform.delay_answers(std::chrono::milliseconds(0));
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events(), ElementsAre("app-1", "app-1 gone"));
    EXPECT_TRUE(fixture.platform.reports()[1].event_id.starts_with("uid-1/"));
  });
}

// As after a take-over: the watch lags, so the replica read and reported an application whose predecessor the
// watch still shows. Then another replica holds the shard, and one list shows that both are gone.
TEST(Reporter, WhatWasReadAheadOfTheWatchIsReportedGoneAlsoWhenItHasASuccessor) {
  play(of_three(0), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    SampleApp app{.name = "app-1", .uid = "uid-1", .resources = 0};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    fixture.kube.stall_watches(true);
    fixture.remove(app);
    app.uid = "uid-2";
    fixture.put(app);
    fixture.reporter().changes().claimed(0, 7);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.reporter().changes().released(0);
    fixture.remove(app);
    app.uid = "uid-3";
    fixture.put(app);
    fixture.kube.compact();
    fixture.kube.cut_watches();
    fixture.kube.stall_watches(false);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events(), ElementsAre("app-1", "app-1 gone", "app-1", "app-1 gone"));
    EXPECT_TRUE(fixture.platform.reports()[3].event_id.starts_with("uid-2/"));
  });
}

// The replica released the shard, read the successor, and the watch delivered the deletion alone.
TEST(Reporter, WhatWasReadAheadOfTheWatchIsNotReportedGoneByATakeOver) {
  play(of_three(0), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start_doubles();
    SampleApp app{.name = "app-0", .uid = "uid-9", .resources = 0};
    fixture.put(app);
    const auto with_successor = fixture.kube.store().back_up();
    fixture.remove(app);
    app.uid = "uid-0";
    fixture.put(app);
    const auto first = *fixture.kube.find(k8s::resources::kApplications, {"argocd", "app-0"});
    co_await fixture.start_reporter();
    fixture.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.kube.store().restore(with_successor);
    fixture.reporter().changes().compare_again("argocd/app-0");
    fixture.reporter().changes().released(2);
    const auto row = inventory_row("argocd/app-0", "uid-9");
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return fixture.ledger().inventory().contains(row); },
                                  "the successor in the inventory"));
    fixture.kube.send_on_watches(k8s::resources::kApplications,
                                 json{{"type", "DELETED"}, {"object", first}}.dump() + "\n");
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    fixture.reporter().changes().claimed(2, 3);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_TRUE(co_await fixture.is_quiet());
    // Who takes a shard over reports its own deletions once more.
    EXPECT_THAT(fixture.events(), ElementsAre("app-0", "app-0 gone", "app-0 gone", "app-0"));
    EXPECT_TRUE(fixture.platform.reports()[1].event_id.starts_with("uid-0/"));
    EXPECT_TRUE(fixture.platform.reports()[2].event_id.starts_with("uid-0/"));
    EXPECT_TRUE(fixture.platform.reports()[3].event_id.starts_with("uid-9/"));
  });
}

// Who holds the shard now may never have heard of the resource.
TEST(Reporter, AResourceThatItReportedIsReportedGoneAlsoWhenTheShardIsHeldByAnother) {
  play(of_three(0), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.name = "app-0", .resources = 2});
    fixture.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    fixture.reporter().changes().released(2);
    fixture.put({.name = "app-0", .revision = "r2", .resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 3), ElementsAre("c-1 gone"));
    // The shard's holder may have read c-1 just before, and not have told its deletion when it lost the
    // shard again.
    fixture.reporter().changes().claimed(2, 3);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(7));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 4), UnorderedElementsAre("app-0", "c-0", "c-1 gone"));
  });
}

// They came while this replica held the shard, and it had not read them. The next holder reports them and is removed
// with its ledger.
TEST(Reporter, WhatItCouldNotReportBeforeAReleaseIsReportedGoneLater) {
  play(of_three(0), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp known{.name = "app-0", .uid = "uid-0", .resources = 1};
    const SampleApp fresh{.name = "app-3", .uid = "uid-3", .resources = 1};
    CO_ASSERT_EQ(fixture.reporter().changes().shard_of_key("argocd/app-3"), 2U);
    fixture.reporter().changes().claimed(2, 1);
    fixture.put(known);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    // From now on states are reported as the watch delivers them.
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.status().has("taken over"); },
                                             "the end of the take-over"));
    fixture.argocd.delay_answers(std::chrono::hours(1));
    fixture.put({.name = "app-0", .uid = "uid-0", .resources = 2});
    fixture.put(fresh);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.reporter().changes().owned() == 2; }, "both applications"));
    fixture.reporter().changes().released(2);
    fixture.argocd.end_faults();
    EXPECT_TRUE(co_await fixture.is_quiet());
    fixture.remove(known);
    fixture.remove(fresh);
    EXPECT_TRUE(co_await fixture.is_quiet());
    const auto before = fixture.platform.reports().size();
    fixture.reporter().changes().claimed(2, 3);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(before + 5));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(
        fixture.events("", before),
        UnorderedElementsAre("app-0 gone", "c-0 gone", "c-1 gone", "app-3 gone", "c-0 gone"));
  });
}

// It was reported by a replica that is no more, and so is its ledger.
TEST(Reporter, WhatGoesWhileAReplicaIsScaledAwayIsReportedGoneByTheOthers) {
  const test::TempDir folder;
  auto options = of_three(0);
  options.ledger.path = (folder / "ledger.db").string();
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp deleted{.name = "app-0", .uid = "uid-0", .resources = 2};
    fixture.put(deleted);
    fixture.put({.name = "app-2", .uid = "uid-2", .resources = 2});
    fixture.put({.name = "app-1", .uid = "uid-1", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    co_await fixture.stop_reporter();
    fixture.remove(deleted);
    fixture.put({.name = "app-2", .uid = "uid-2", .resources = 1});
    fixture.options.reporter.changes.replicas = 1;
    fixture.options.term = 0;
    co_await fixture.start_reporter();
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(8));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 1), UnorderedElementsAre("app-1", "app-2", "c-0", "c-1 gone",
                                                            "app-0 gone", "c-0 gone", "c-1 gone"));
    EXPECT_EQ(fixture.ledger().inventory().size(), 0U) << "all is its own now";
  });
}

// This one reported the application once, and another one a resource that came later.
TEST(Reporter, WhatOthersAddedToWhatItReportedIsReportedGoneToo) {
  play(of_three(2), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const SampleApp with_another{.name = "app-0", .uid = "uid-0", .resources = 2};
    fixture.put({.name = "app-0", .uid = "uid-0", .resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    fixture.reporter().changes().released(2);
    fixture.put(with_another);
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.ledger().inventory().empty(); },
                                             "an inventory in the ledger"));
    fixture.remove(with_another);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_THAT(fixture.events("", 2), UnorderedElementsAre("app-0 gone", "c-0 gone", "c-1 gone"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ledger().known().empty(); },
                                             "a ledger without applications"));
    EXPECT_FALSE(fixture.ledger().inventory().empty()) << "told once more in its next term";
  });
}

// The replica that reported it is dead when a resource goes, and stays so.
TEST(Reporter, AResourceThatGoesBeforeAShardIsTakenOverIsReportedGone) {
  play(of_three(0), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.name = "app-0", .uid = "uid-0", .resources = 2});
    fixture.put({.name = "app-1", .uid = "uid-1", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    fixture.put({.name = "app-0", .uid = "uid-0", .resources = 1});
    fixture.put({.name = "app-1", .uid = "uid-1", .revision = "r2", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    fixture.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_THAT(fixture.events("", 2), UnorderedElementsAre("app-0", "c-0", "c-1 gone"));
  });
}

// The state with it comes while the one before is being read, and the watch is not known to have caught up.
TEST(Reporter, AResourceThatComesDuringTheFirstReportOfATakeOverIsNotReportedGone) {
  play(of_three(0), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.name = "app-0", .uid = "uid-0", .resources = 1});
    fixture.put({.name = "app-1", .uid = "uid-1", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.status().has("taken over"); },
                                             "the end of the take-over of the first shard"));
    fixture.kube.delay_answers(std::chrono::hours(1), "limit=1");
    fixture.argocd.delay_answers(std::chrono::seconds(3), "/app-0/resource-tree");
    fixture.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.argocd.count("GET", "/app-0/resource-tree") == 1; },
        "the first read of the application"));
    fixture.put({.name = "app-0", .uid = "uid-0", .resources = 2});
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          const auto row =
              fixture.ledger().inventory().find(inventory_row("argocd/app-0", "uid-0"));
          return row != fixture.ledger().inventory().end() && !row->second.change;
        },
        "the newer state in the inventory"));
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(5));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 1), ElementsAre("app-0", "c-0", "app-0", "c-1"));
  });
}

// An app of apps whose children stay: they are reported as Applications, by the holders of their shards.
TEST(Reporter, TheDeletionOfAChildDoesNotFollowFromATakeOverOfItsParent) {
  for (const bool parent_goes : {false, true}) {
    play(of_three(0), [parent_goes](ReporterFixture& fixture) -> Task<> {
      co_await fixture.start();
      const SampleApp parent{.name = "app-0", .uid = "uid-0", .resources = 1};
      fixture.put(parent);
      auto application = parent.application();
      application["status"]["resources"].push_back({{"group", "argoproj.io"},
                                                    {"version", "v1alpha1"},
                                                    {"kind", "Application"},
                                                    {"namespace", "argocd"},
                                                    {"name", "child"},
                                                    {"status", "Synced"}});
      fixture.kube.put(k8s::resources::kApplications, application);
      fixture.put({.name = "app-1", .uid = "uid-1", .resources = 0});
      CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
      if (parent_goes) fixture.remove(parent);
      fixture.put({.name = "app-1", .uid = "uid-1", .revision = "r2", .resources = 0});
      CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
      fixture.reporter().changes().claimed(2, 1);
      CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
      EXPECT_TRUE(co_await fixture.is_quiet());
      const std::string end = parent_goes ? " gone" : "";
      EXPECT_THAT(fixture.events("", 2), UnorderedElementsAre("app-0" + end, "c-0" + end));
    });
  }
}

TEST(Reporter, AfterSomebodyElseReportedAShardAllOfItIsReportedAgain) {
  const test::TempDir folder;
  auto options = of_three(2);
  options.ledger.path = (folder / "ledger.db").string();
  play(options, [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.name = "app-0", .resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    fixture.reporter().changes().released(2);
    fixture.reporter().changes().claimed(2, 2);  // nobody in between
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.reports().size(), 2U);
    fixture.reporter().changes().released(2);
    fixture.reporter().changes().claimed(2, 4);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_THAT(fixture.events("", 2), ElementsAre("app-0", "c-0"));
  });
}

// -- fencing --

TEST(Reporter, AReleaseEndsTheReportsOfItsShard) {
  play(of_three(2), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.platform.delay_answers(std::chrono::hours(1));
    fixture.put({.name = "app-0", .resources = 40});
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.platform.requests().size() == 1; }, "the first request"));
    fixture.reporter().changes().released(2);
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !fixture.reporter().changes().busy(2); },
                                             "the end of the work"));
    fixture.platform.delay_answers(std::chrono::milliseconds(0));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.requests().size(), 1U) << "nothing after the release";
  });
}

// The receiver takes the later sequence, whichever arrives last.
TEST(Reporter, TheNextTermsEventsAreAboveTheFloor) {
  play(of_three(2), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.name = "app-0", .resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    const auto far = fixture.platform.reports()[1].sequence + 3'600'000'000ULL;
    fixture.reporter().changes().released(2);
    fixture.reporter().changes().claimed(2, 9, far);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(4));
    EXPECT_EQ(fixture.platform.reports()[2].sequence, far);
    EXPECT_EQ(fixture.platform.reports()[3].sequence, far);
    fixture.reporter().changes().released(2);
    fixture.remove({.name = "app-0"});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(6));
    EXPECT_EQ(fixture.platform.reports()[4].sequence, far + 1)
        << "no owner, so just above its last";
    EXPECT_EQ(fixture.platform.reports()[5].sequence, far + 1);
  });
}

// Its answers come when another term has begun and has distrusted the ledger.
TEST(Reporter, ALateReportDoesNotTouchTheLedgerOfTheNextTerm) {
  play(of_three(2), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.name = "app-0", .resources = 1});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    fixture.platform.delay_answers(std::chrono::milliseconds(50));
    fixture.put({.name = "app-0", .revision = "r2", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.platform.requests().size() == 3; }, "three requests"));
    fixture.reporter().changes().released(2);
    fixture.reporter().changes().claimed(2, 9);
    fixture.platform.delay_answers(std::chrono::milliseconds(0));
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          const auto known = fixture.ledger().known().find("argocd/app-0");
          return known != fixture.ledger().known().end() && known->second.change;
        },
        "the change of app-0 in the ledger"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    // The new term reports all of it, whatever the old one wrote, and also what the old one was just told.
    EXPECT_GE(fixture.platform.requests().size(), 5U);
    const auto newest = [&](const char* kind, const char* name) {
      return std::ranges::max(fixture.platform.find(kind, name) |
                              std::views::transform([](const auto* r) { return r->sequence; }));
    };
    EXPECT_EQ(newest("Application", "app-0"), newest("ConfigMap", "c-0")) << "both by the new term";
    const auto last = fixture.platform.find("ConfigMap", "c-0").back();
    EXPECT_EQ(last->object["data"]["content"], "2");
    std::uint64_t highest = 0;
    for (const auto& report : fixture.platform.reports()) {
      if (&report != last) highest = std::max(highest, report.sequence);
    }
    EXPECT_GE(last->sequence, highest);
  });
}

// -- epochs --

// Its sequences are at the limit of its shard's Lease, which is not renewed meanwhile.
TEST(Reporter, AnApplicationThatARestoreBringsBackUsesNoSequenceAgain) {
  play(of_three(0), [](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const auto latest = wall_now();
    auto& changes = fixture.reporter().changes();
    changes.limit_sequences([latest](std::uint32_t) { return latest; });
    // The replica stood in for another one, which was far ahead.
    changes.claimed(2, 1, sequence_of(latest + std::chrono::hours(1)));
    const SampleApp far{.name = "app-0", .uid = "uid-0", .resources = 0};
    fixture.put(far);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    fixture.remove(far);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    const SampleApp app{.name = "app-1", .uid = "uid-1", .resources = 0};
    for (std::size_t times = 0; times < 3; ++times) {
      fixture.put(app);
      CO_ASSERT_TRUE(co_await fixture.wait_for_events(2 * times + 3));
      fixture.remove(app);
      CO_ASSERT_TRUE(co_await fixture.wait_for_events(2 * times + 4));
    }
    const auto& reports = fixture.platform.reports();
    for (std::size_t i = 3; i < reports.size(); ++i) {
      EXPECT_GT(reports[i].sequence, reports[i - 1].sequence) << reports[i].event_id;
      EXPECT_LT(reports[i].sequence, sequence_of(latest + std::chrono::seconds(1)));
    }
  });
}

// etcd from a backup: every resourceVersion is lower than before.
TEST(Reporter, AfterARestoreOfTheClusterEverythingIsComparedAgain) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.put({.name = "web", .resources = 1});
    fixture.put({.name = "other", .uid = "uid-o", .resources = 0});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(3));
    const auto backup = fixture.kube.store().back_up();
    for (const auto* revision : {"r2", "r3", "r1", "r2", "r3"}) {
      fixture.put({.name = "web", .revision = revision, .resources = 1});
      CO_ASSERT_TRUE(co_await test::eventually(
          [&] {
            return fixture.platform.find("Application", "web")
                       .back()
                       ->object["status"]["sync"]["revision"] == revision;
          },
          "the new revision"));
    }
    EXPECT_TRUE(co_await fixture.is_quiet());
    const auto before = fixture.platform.reports().size();
    const SampleApp then{.name = "web", .resources = 1};
    fixture.argocd.set_managed_resources("web", then.managed());
    fixture.kube.restore(backup);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(before + 1));
    EXPECT_EQ(fixture.platform.reports().back().object["status"]["sync"]["revision"], "r1");
    fixture.put({.name = "web", .revision = "r2", .resources = 1, .content = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(before + 3));
    EXPECT_EQ(fixture.events().back(), "c-0");
  });
}

// The control plane takes no events meanwhile. The application is back in the state that was told last.
TEST(Reporter, WhatARestoreBringsBackBeforeItsDeletionIsToldStaysReported) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    const auto sees = [&fixture](std::size_t count) {
      return test::eventually(
          [&fixture, count] { return fixture.reporter().applications().size() == count; },
          "the expected number of applications");
    };
    const SampleApp app{.name = "web", .resources = 1};
    fixture.put(app);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    EXPECT_TRUE(co_await fixture.is_quiet());
    const auto backup = fixture.kube.store().back_up();
    co_await fixture.platform.stop();
    fixture.remove(app);
    CO_ASSERT_TRUE(co_await sees(0));
    fixture.kube.restore(backup);
    CO_ASSERT_TRUE(co_await sees(1));
    CO_ASSERT_OK(fixture.platform.start());
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(6));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.events("", 2), UnorderedElementsAre("web gone", "c-0 gone", "web", "c-0"));
    EXPECT_EQ(fixture.events("", 4).front(), "web");
  });
}

// The watch was cut before it delivered the change, which a read had shown, and the cluster was restored
// before it was open again: the list has nothing that is older than what the watch delivered.
TEST(Reporter, ARestoreThatOnlyAReadCouldShowIsComparedAgain) {
  play([](ReporterFixture& fixture) -> Task<> {
    const auto is_told = [&fixture](const std::string& revision, Clock::duration limit) {
      return fixture.platform.wait_for(
          [revision](const test::FakePlatform::Report& report) {
            return report.object["status"]["sync"]["revision"] == revision;
          },
          deadline_after(limit));
    };
    co_await fixture.start();
    fixture.put({.revision = "r1", .resources = 0});
    EXPECT_NE(co_await is_told("r1", std::chrono::seconds(10)), nullptr);
    const auto backup = fixture.kube.store().back_up();
    fixture.kube.stall_watches(true);
    fixture.put({.revision = "r2", .resources = 0});
    fixture.reporter().changes().claimed(0, 9);  // reads the applications
    EXPECT_NE(co_await is_told("r2", std::chrono::seconds(10)), nullptr);
    fixture.kube.store().restore(backup);
    fixture.kube.cut_watches();
    fixture.kube.stall_watches(false);
    const auto before = fixture.platform.reports().size();
    CO_ASSERT_TRUE(co_await fixture.platform.wait_for_count(
        before + 1, deadline_after(std::chrono::minutes(3))));
    EXPECT_EQ(fixture.platform.reports().back().object["status"]["sync"]["revision"], "r1");
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.reports().size(), before + 1);
  });
}

// etcd was restored while the watch stayed open, so nothing shows that versions are given out again.
TEST(Reporter, AStateThatLooksOlderThanOneThatWasReadIsNotLost) {
  play([](ReporterFixture& fixture) -> Task<> {
    const auto backup = fixture.kube.store().back_up();
    const auto put = [&fixture](const std::string& uid) {
      fixture.put({.name = "web", .uid = uid, .resources = 0});
      return *fixture.kube.find(k8s::resources::kApplications, {"argocd", "web"});
    };
    const auto told = [&fixture](const std::string& uid) {
      return test::eventually(
          [&fixture, uid] {
            return !fixture.platform.reports().empty() &&
                   fixture.platform.reports().back().event_id.starts_with(uid + "/");
          },
          "an event of the application");
    };
    co_await fixture.start();
    const auto old = put("uid-old");
    CO_ASSERT_TRUE(co_await told("uid-old"));
    fixture.kube.stall_watches(true);
    fixture.remove({.name = "web"});
    for (int i = 0; i < 3; ++i) put("uid-new");
    // Reads the applications.
    fixture.reporter().changes().claimed(0, 9);
    CO_ASSERT_TRUE(co_await told("uid-new"));

    fixture.kube.store().restore(backup);
    const auto newest = put("uid-newest");
    fixture.kube.stall_watches(false);
    fixture.kube.send_on_watches(k8s::resources::kApplications,
                                 json{{"type", "DELETED"}, {"object", old}}.dump() + "\n" +
                                     json{{"type", "ADDED"}, {"object", newest}}.dump() + "\n");
    EXPECT_TRUE(co_await told("uid-newest"));
  });
}

}  // namespace
}  // namespace gitops::reporter
