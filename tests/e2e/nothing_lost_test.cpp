#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "e2e/reporter_harness.hpp"
#include "support/wait.hpp"

// Many changes, a long outage, deletions while the daemon is down: all reach the control plane.
namespace gitops::test {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::UnorderedElementsAre;

std::string name_of(int number) {
  return "app-" + std::to_string(number);
}

// Enough for a busy machine.
constexpr auto kLimit = std::chrono::seconds(180);

TEST(NothingLost, AThousandApplicationsCreatedAtOnceAndThenChanged) {
  play(
      [](ReporterHarness& harness) -> Task<> {
        constexpr int kCount = 1000;
        co_await harness.start();
        for (const char* status : {"OutOfSync", "Synced"}) {
          for (int i = 0; i < kCount; ++i) {
            harness.put_app(name_of(i), 1, {.sync_status = status});
          }
        }
        std::set<std::string> synced;
        std::size_t seen = 0;
        CO_ASSERT_TRUE(co_await harness.platform.wait_for(
                           [&](const FakePlatform::Report&) {
                             for (; seen < harness.platform.reports().size(); ++seen) {
                               const auto& report = harness.platform.reports()[seen];
                               if (report.kind() != "Application") continue;
                               if (report.source("syncStatus") == "Synced") {
                                 synced.insert(report.name());
                               } else {
                                 synced.erase(report.name());
                               }
                             }
                             return synced.size() == kCount;
                           },
                           deadline_after(kLimit - std::chrono::seconds(10))) != nullptr);
        const auto metrics = harness.daemon->get("/metrics").body;
        EXPECT_THAT(metrics, ::testing::HasSubstr("gitops_event_reporter_overdue_objects 0"));
      },
      kLimit);
}

// The case of the product's documentation: an outage of 20 s during 50 changes.
TEST(NothingLost, TwentySecondsOfRefusalsDuringFiftyChanges) {
  play(
      [](ReporterHarness& harness) -> Task<> {
        constexpr int kChanges = 50;
        constexpr int kApps = 10;
        co_await harness.start();
        for (int i = 0; i < kApps; ++i) harness.put_app(name_of(i), 0);
        for (int i = 0; i < kApps; ++i) {
          CO_ASSERT_TRUE(co_await harness.wait_for_content(name_of(i), 0));
        }
        const auto begin = Clock::now();
        const auto outage = std::chrono::seconds(20);
        harness.platform.fail_next(1'000'000, 503);
        for (int i = 0; i < kChanges; ++i) {
          harness.put_app(name_of(i % kApps), i, {.revision = "r" + std::to_string(i)});
          co_await sleep_for(outage / (kChanges + 1));
        }
        co_await sleep_for(outage - (Clock::now() - begin));
        harness.platform.end_faults();
        for (int i = kChanges - kApps; i < kChanges; ++i) {
          CO_ASSERT_TRUE(co_await harness.wait_for_content(name_of(i % kApps), i));
        }
        // The waiting states of one application fit into the queue, so none is dropped.
        std::set<std::string> states;
        for (const auto* report : harness.platform.find("Application", "")) {
          states.insert(report->object.value("/status/sync/revision"_json_pointer, ""));
        }
        for (int i = 0; i < kChanges; ++i) EXPECT_THAT(states, Contains("r" + std::to_string(i)));
      },
      kLimit);
}

TEST(NothingLost, ApplicationsDeletedWhileTheReporterIsDown) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    const Environment ledger{{"LEDGER_FILE", (harness.folder / "ledger.db").string()}};
    harness.start_daemon(ledger);
    harness.put_app("plain", 1);
    harness.put_app("guarded", 1,
                    {.metadata = {{"finalizers", {"resources-finalizer.argocd.argoproj.io"}}}});
    harness.put_app("stays", 1);
    for (const auto* name : {"plain", "guarded", "stays"}) {
      CO_ASSERT_TRUE(co_await harness.wait_for_content(name, 1));
    }
    EXPECT_EQ(co_await harness.daemon->stop(), 0);
    const auto before = harness.platform.reports().size();
    const auto& applications = k8s::resources::kApplications;
    EXPECT_TRUE(harness.kube.remove(applications, {"argocd", "plain"}));
    // The API server marks the deletion, then Argo CD removes the finalizer.
    EXPECT_TRUE(harness.kube.remove(applications, {"argocd", "guarded"}));
    auto guarded = harness.kube.find(applications, {"argocd", "guarded"});
    CO_ASSERT_TRUE(guarded.has_value());
    EXPECT_TRUE((*guarded)["metadata"].contains("deletionTimestamp"));
    (*guarded)["metadata"].erase("finalizers");
    harness.kube.put(applications, *guarded);
    harness.kube.remove(applications, {"argocd", "guarded"});
    EXPECT_FALSE(harness.kube.find(applications, {"argocd", "guarded"}).has_value());

    harness.start_daemon(ledger);
    CO_ASSERT_TRUE(co_await harness.platform.wait_for_count(before + 4, soon()));
    EXPECT_TRUE(co_await harness.platform.wait_until_quiet(std::chrono::milliseconds(300), soon()));
    EXPECT_THAT(harness.events(before),
                UnorderedElementsAre("Application plain gone", "ConfigMap plain-c gone",
                                     "Application guarded gone", "ConfigMap guarded-c gone"));
  });
}

}  // namespace
}  // namespace gitops::test
