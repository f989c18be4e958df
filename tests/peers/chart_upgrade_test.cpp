// Both reporters as helm installs them, with every shard, during an upgrade of the release while
// objects are created, changed and deleted. Compares the acknowledged events with the changes.
#include <algorithm>
#include <iostream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "common/core/task_group.hpp"
#include "daemons/reporter_process.hpp"
#include "daemons/router_harness.hpp"
#include "doubles/fake_platform.hpp"
#include "peers/chart_upgrade_bed.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "peers/rendered_workload.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kApps = "runtime-event-reporter";
constexpr const char* kResources = "cluster-event-reporter";

TEST(ChartUpgrade, LosesNothingWhileThePodsOfBothReportersAreReplaced) {
  GITOPS_REQUIRE_PEERS();
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  for (const auto& lacking : {PeerRollouts::missing(), PeerWorkflows::missing()}) {
    if (lacking) GTEST_SKIP() << "peers: " << *lacking;
  }
  play([](ChartUpgradeBed& bed) -> Task<> {
    CO_ASSERT_OK(bed.platform.start());
    co_await bed.aside([&] {
      bed.provide_volumes(5);
      bed.make_platform_secret();
      bed.helm(2, 20);
    });
    for (const auto* set : {kApps, kResources}) {
      for (const int ordinal : {0, 1}) co_await bed.start(set, ordinal);
    }
    for (const auto* set : {kApps, kResources}) {
      for (const int ordinal : {0, 1}) co_await bed.ready(set, ordinal);
    }
    bed.start_stream();
    co_await bed.wait_for_steps(40);

    // One more replica of one reporter, and a changed setting of both.
    co_await bed.aside([&] {
      for (const auto* set : {kApps, kResources}) bed.hold_pods_below(set, 2);
      bed.helm(3, 30);
    });
    const auto before = bed.changes.steps();
    co_await bed.start(kApps, 2);
    for (const int ordinal : {1, 0}) {
      for (const auto* set : {kApps, kResources}) co_await bed.replace(set, ordinal);
    }
    co_await bed.ready(kApps, 2);
    EXPECT_GT(bed.changes.steps(), before + 20) << "the stream ran meanwhile";
    co_await bed.wait_for_steps(20);
    co_await bed.stop_stream();

    co_await bed.wait_until_nothing_is_lost();
    EXPECT_THAT(bed.lost(), IsEmpty());
    std::map<std::string, int> gone;
    for (const auto& [uid, state] : bed.acknowledged()) {
      gone[state.what.substr(0, state.what.find(' '))] += state.gone;
    }
    for (const auto* kind : {"Application", "Rollout", "AnalysisRun", "Workflow"}) {
      EXPECT_GE(gone[kind], 2) << kind << "s are deleted while the pods are replaced";
    }
    EXPECT_THAT(bed.platform.refused(), IsEmpty());

    for (const auto& [name, pod] : bed.pods) {
      const auto& environment = pod.workload->environment();
      EXPECT_EQ(environment.at("THREADINESS"), "30") << name;
      EXPECT_EQ(environment.at("POD_NAME"), name);
      const bool apps = environment.at("REPORTER_MODE") == "app";
      EXPECT_EQ(environment.at("EVENT_REPORTER_REPLICAS"), apps ? "3" : "2") << name;
      // The password is a file: environments of processes are easily seen.
      EXPECT_FALSE(environment.contains("ARGO_CD_PASSWORD")) << name;
      EXPECT_EQ(std::ranges::count(pod.workload->argv(), "--argocd-password-file"), apps ? 1 : 0);
      EXPECT_THAT(pod.process->log(), Not(HasSubstr("forbidden"))) << name;
      const std::string mode = apps ? "app" : "resource";
      const auto lease = co_await bed.aside([&, mode] {
        return bed.get("lease", "event-reporter-" + mode + name.substr(name.rfind('-')));
      });
      EXPECT_EQ(lease.at("/spec/holderIdentity"_json_pointer), name);
    }
    EXPECT_EQ(bed.pods.size(), 5U);
    std::cout << bed.changes.steps() << " changes of " << bed.changes.expected().size()
              << " objects, " << bed.platform.reports().size() << " events\n";
  });
}

}  // namespace
}  // namespace gitops::test
