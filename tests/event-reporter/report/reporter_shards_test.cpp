// Shards that change hands, and clusters that are restored.

#include <algorithm>
#include <ranges>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reporter_scene.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

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
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !scene.reporter().changes().busy(2); },
                                             "the end of the work"));
    scene.put({.name = "app-0", .uid = "uid-0", .revision = "r2", .resources = 0});
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.platform.reports().size(), 2U);
  });
}

// The former holder's watch was ahead of this one, and told the deletion.
TEST(Reporter, WhatTheWatchStillDeliversFromBeforeATakeOverIsNotTold) {
  play(of_three(0), [](Scene& scene) -> Task<> {
    co_await scene.start();
    const auto without = scene.kube.store().back_up();
    scene.put({.name = "app-0", .uid = "uid-0", .resources = 0});
    auto state = *scene.kube.find(k8s::resources::kApplications, {"argocd", "app-0"});
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return scene.reporter().applications().size() == 1; },
                                  "the expected number of applications"));
    // It is deleted, and the watch does not deliver that yet.
    scene.kube.store().restore(without);
    for (int i = 0; i < 5; ++i) scene.put({.name = "app-1", .uid = "uid-1", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    const auto reads = [&scene] {
      return std::ranges::count_if(scene.kube.requests(), [](const auto& request) {
        return request.target.ends_with("/applications/app-0");
      });
    };
    const auto until_read = [&](std::ptrdiff_t count) {
      return test::eventually(
          [&, count] { return reads() == count || scene.platform.reports().size() > 1; },
          "the expected number of reads");
    };
    scene.reporter().changes().claimed(2, 1);
    CO_ASSERT_TRUE(co_await until_read(1));
    const auto deliver = [&scene, &state](const char* type, const char* sync_status) {
      state["status"]["sync"]["status"] = sync_status;
      state["metadata"]["resourceVersion"] =
          std::to_string(std::stoull(state["metadata"]["resourceVersion"].get<std::string>()) + 1);
      scene.kube.send_on_watches(k8s::resources::kApplications,
                                 json{{"type", type}, {"object", state}}.dump() + "\n");
    };
    deliver("MODIFIED", "OutOfSync");
    CO_ASSERT_TRUE(co_await until_read(2));
    deliver("MODIFIED", "Unknown");
    CO_ASSERT_TRUE(co_await until_read(3));
    EXPECT_EQ(scene.platform.reports().size(), 1U);
    deliver("DELETED", "Unknown");
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    EXPECT_THAT(scene.events("", 1), ElementsAre("app-0 gone"));
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

TEST(Reporter, TheDeletionOfWhatItReportedIsReportedAlsoWhenItsShardIsHeldByAnother) {
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
// Which comes and goes while the deletion of its predecessor is being reported.
TEST(Reporter, TheDeletionOfASuccessorThatItNeverReportedIsNotReported) {
  play(of_three(0), [](Scene& scene) -> Task<> {
    co_await scene.start();
    SampleApp app{.name = "app-1", .uid = "uid-1", .resources = 0};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    EXPECT_TRUE(co_await scene.is_quiet());
    scene.reporter().changes().released(0);
    scene.platform.delay_answers(std::chrono::milliseconds(100));
    const auto requests = scene.platform.requests().size();
    app.uid = "uid-2";
    scene.put(app);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return scene.platform.requests().size() > requests; }, "another request"));
    scene.remove(app);
    scene.platform.delay_answers(std::chrono::milliseconds(0));
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events(), ElementsAre("app-1", "app-1 gone"));
    EXPECT_TRUE(scene.platform.reports()[1].event_id.starts_with("uid-1/"));
  });
}

TEST(Reporter, AResourceThatItReportedIsReportedGoneAlsoWhenTheShardIsHeldByAnother) {
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
    // The shard's holder may have read c-1 just before, and not have told its deletion when it lost the
    // shard again.
    scene.reporter().changes().claimed(2, 3);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(7));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 4), UnorderedElementsAre("app-0", "c-0", "c-1 gone"));
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
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !scene.ledger().inventory().empty(); },
                                             "an inventory in the ledger"));
    scene.remove(with_another);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(5));
    EXPECT_THAT(scene.events("", 2), UnorderedElementsAre("app-0 gone", "c-0 gone", "c-1 gone"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return scene.ledger().known().empty(); },
                                             "a ledger without applications"));
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

TEST(Reporter, AfterSomebodyElseReportedAShardAllOfItIsReportedAgain) {
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

// -- fencing --

TEST(Reporter, AReleaseEndsTheReportsOfItsShard) {
  play(of_three(2), [](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.platform.delay_answers(std::chrono::hours(1));
    scene.put({.name = "app-0", .resources = 40});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return scene.platform.requests().size() == 1; },
                                             "the first request"));
    scene.reporter().changes().released(2);
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !scene.reporter().changes().busy(2); },
                                             "the end of the work"));
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
    CO_ASSERT_TRUE(co_await test::eventually([&] { return scene.platform.requests().size() == 3; },
                                             "three requests"));
    scene.reporter().changes().released(2);
    scene.reporter().changes().claimed(2, 9);
    scene.platform.delay_answers(std::chrono::milliseconds(0));
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          const auto known = scene.ledger().known().find("argocd/app-0");
          return known != scene.ledger().known().end() && known->second.change;
        },
        "the change of app-0 in the ledger"));
    EXPECT_TRUE(co_await scene.is_quiet());
    // The new term reports all of it, whatever the old one wrote, and also what the old one was just told.
    EXPECT_GE(scene.platform.requests().size(), 5U);
    const auto newest = [&](const char* kind, const char* name) {
      return std::ranges::max(scene.platform.find(kind, name) |
                              std::views::transform([](const auto* r) { return r->sequence; }));
    };
    EXPECT_EQ(newest("Application", "app-0"), newest("ConfigMap", "c-0")) << "both by the new term";
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

// Its sequences are at the limit of its shard's Lease, which is not renewed meanwhile.
TEST(Reporter, AnApplicationThatARestoreBringsBackUsesNoSequenceAgain) {
  play(of_three(0), [](Scene& scene) -> Task<> {
    co_await scene.start();
    const auto latest = wall_now();
    auto& changes = scene.reporter().changes();
    changes.limit_sequences([latest](std::uint32_t) { return latest; });
    // The replica stood in for another one, which was far ahead.
    changes.claimed(2, 1, sequence_of(latest + std::chrono::hours(1)));
    const SampleApp far{.name = "app-0", .uid = "uid-0", .resources = 0};
    scene.put(far);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(1));
    scene.remove(far);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    const SampleApp app{.name = "app-1", .uid = "uid-1", .resources = 0};
    for (std::size_t times = 0; times < 3; ++times) {
      scene.put(app);
      CO_ASSERT_TRUE(co_await scene.wait_for_events(2 * times + 3));
      scene.remove(app);
      CO_ASSERT_TRUE(co_await scene.wait_for_events(2 * times + 4));
    }
    const auto& reports = scene.platform.reports();
    for (std::size_t i = 3; i < reports.size(); ++i) {
      EXPECT_GT(reports[i].sequence, reports[i - 1].sequence) << reports[i].event_id;
      EXPECT_LT(reports[i].sequence, sequence_of(latest + std::chrono::seconds(1)));
    }
  });
}

// etcd from a backup: every resourceVersion is lower than before.
TEST(Reporter, AfterARestoreOfTheClusterEverythingIsComparedAgain) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    scene.put({.name = "web", .resources = 1});
    scene.put({.name = "other", .uid = "uid-o", .resources = 0});
    CO_ASSERT_TRUE(co_await scene.wait_for_events(3));
    const auto backup = scene.kube.store().back_up();
    for (const auto* revision : {"r2", "r3", "r1", "r2", "r3"}) {
      scene.put({.name = "web", .revision = revision, .resources = 1});
      CO_ASSERT_TRUE(co_await test::eventually(
          [&] {
            return scene.platform.find("Application", "web")
                       .back()
                       ->object["status"]["sync"]["revision"] == revision;
          },
          "the new revision"));
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

// The control plane takes no events meanwhile. The application is back in the state that was told last.
TEST(Reporter, WhatARestoreBringsBackBeforeItsDeletionIsToldStaysReported) {
  play([](Scene& scene) -> Task<> {
    co_await scene.start();
    const auto sees = [&scene](std::size_t count) {
      return test::eventually(
          [&scene, count] { return scene.reporter().applications().size() == count; },
          "the expected number of applications");
    };
    const SampleApp app{.name = "web", .resources = 1};
    scene.put(app);
    CO_ASSERT_TRUE(co_await scene.wait_for_events(2));
    EXPECT_TRUE(co_await scene.is_quiet());
    const auto backup = scene.kube.store().back_up();
    co_await scene.platform.stop();
    scene.remove(app);
    CO_ASSERT_TRUE(co_await sees(0));
    scene.kube.restore(backup);
    CO_ASSERT_TRUE(co_await sees(1));
    CO_ASSERT_OK(scene.platform.start());
    CO_ASSERT_TRUE(co_await scene.wait_for_events(6));
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_THAT(scene.events("", 2), UnorderedElementsAre("web gone", "c-0 gone", "web", "c-0"));
    EXPECT_EQ(scene.events("", 4).front(), "web");
  });
}

// The watch was cut before it delivered the change, which a read had shown, and the cluster was restored
// before it was open again: the list has nothing that is older than what the watch delivered.
TEST(Reporter, ARestoreThatOnlyAReadCouldShowIsComparedAgain) {
  play([](Scene& scene) -> Task<> {
    const auto is_told = [&scene](const std::string& revision, Clock::duration limit) {
      return scene.platform.wait_for(
          [revision](const test::FakePlatform::Report& report) {
            return report.object["status"]["sync"]["revision"] == revision;
          },
          deadline_after(limit));
    };
    co_await scene.start();
    scene.put({.revision = "r1", .resources = 0});
    EXPECT_NE(co_await is_told("r1", std::chrono::seconds(10)), nullptr);
    const auto backup = scene.kube.store().back_up();
    scene.kube.stall_watches(true);
    scene.put({.revision = "r2", .resources = 0});
    scene.reporter().changes().claimed(0, 9);  // reads the applications
    EXPECT_NE(co_await is_told("r2", std::chrono::seconds(10)), nullptr);
    scene.kube.store().restore(backup);
    scene.kube.cut_watches();
    scene.kube.stall_watches(false);
    const auto before = scene.platform.reports().size();
    CO_ASSERT_TRUE(co_await scene.platform.wait_for_count(before + 1,
                                                          deadline_after(std::chrono::minutes(3))));
    EXPECT_EQ(scene.platform.reports().back().object["status"]["sync"]["revision"], "r1");
    EXPECT_TRUE(co_await scene.is_quiet());
    EXPECT_EQ(scene.platform.reports().size(), before + 1);
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
      return test::eventually(
          [&scene, uid] {
            return !scene.platform.reports().empty() &&
                   scene.platform.reports().back().event_id.starts_with(uid + "/");
          },
          "an event of the application");
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

}  // namespace
}  // namespace gitops::reporter
