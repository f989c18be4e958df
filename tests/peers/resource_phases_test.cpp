// What the event-reporter in mode `resource` tells of an object's phases, compared with what the
// API server had: the same ones in the same order. With the real controllers of Rollouts and
// Workflows.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemons/reporter_process.hpp"
#include "doubles/fake_platform.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "peers/resource_phases_bed.hpp"
#include "peers/shared_cluster.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;
using Report = FakePlatform::Report;

TEST_F(ResourcePhases, OfACanaryAreReportedInOrder) {
  shared_rollouts();
  shared_cluster().create_namespace(ns);
  const PhaseHistory history(shared_cluster(), ns, "rollouts", shop);
  play(shared_cluster(), [&](ResourcePhasesBed& bed) -> Task<> {
    co_await bed.start();
    co_await apply_canary(bed, "example.test/shop:1");
    CO_ASSERT_TRUE(co_await rollout_is(bed, "Healthy"));
    co_await apply_canary(bed, "example.test/shop:2");
    CO_ASSERT_TRUE(co_await rollout_is(bed, "Paused"));
    co_await bed.aside([this] { shared_rollouts().promote(ns, shop); });
    CO_ASSERT_TRUE(co_await rollout_is(bed, "Healthy"));
    co_await apply_canary(bed, "example.test/shop:3");
    CO_ASSERT_TRUE(co_await rollout_is(bed, "Paused"));
    co_await bed.aside([this] { shared_rollouts().abort(ns, shop); });
    CO_ASSERT_TRUE(co_await rollout_is(bed, "Degraded"));
    CO_ASSERT_TRUE(co_await bed.reported("Rollout", shop, "Degraded"));
    CO_ASSERT_TRUE(co_await bed.quiet());
    const auto reply = co_await bed.aside([&] {
      return bed.cluster.request(
          "GET", "/apis/argoproj.io/v1alpha1/namespaces/" + ns + "/rollouts/" + shop);
    });
    const auto* last = bed.platform.find("Rollout", shop).back();
    EXPECT_EQ(last->data.size(), 1U) << last->data.dump();
    EXPECT_THAT(last->data.at("object").get<std::string>(), StartsWith("{"));
    EXPECT_FALSE(last->object.at("metadata").contains("managedFields"));
    EXPECT_EQ(essence_of(last->object), essence_of(json::parse(reply.body)));

    co_await bed.kubectl({"--namespace", ns, "delete", "rollout", shop});
    const auto* gone = co_await bed.reported_gone("Rollout", shop);
    CO_ASSERT_TRUE(gone != nullptr);
    EXPECT_TRUE(gone->object.contains("/metadata/deletionTimestamp"_json_pointer));
    CO_ASSERT_TRUE(co_await bed.quiet());
    EXPECT_EQ(bed.platform.find("Rollout", shop).back(), gone);

    // The order is that in which the API server had it, and no phase is missing.
    const auto phases = co_await bed.aside([&] { return history.phases(); });
    EXPECT_EQ(bed.phases("Rollout", shop), phases);
    EXPECT_THAT(phases, IsSupersetOf({"Healthy", "Paused", "Degraded"}));
    std::set<std::string> ids;
    for (const auto& report : bed.platform.reports()) {
      EXPECT_TRUE(ids.insert(report.event_id).second) << report.event_id;
    }
  });
}

TEST_F(ResourcePhases, OfAnAnalysisRunAreReportedInOrder) {
  shared_rollouts();
  shared_cluster().create_namespace(ns);
  const PhaseHistory history(shared_cluster(), ns, "analysisruns", "check");
  play(shared_cluster(), [&](ResourcePhasesBed& bed) -> Task<> {
    co_await bed.start();
    co_await bed.kubectl({"--namespace", ns, "create", "--filename", "-"},
                         PeerRollouts::job_analysis("check"));
    CO_ASSERT_TRUE(co_await bed.reported("AnalysisRun", "check", "Successful"));
    CO_ASSERT_TRUE(co_await bed.quiet());
    const auto phases = co_await bed.aside([&] { return history.phases(); });
    EXPECT_EQ(bed.phases("AnalysisRun", "check"), phases);
    EXPECT_THAT(phases, IsSupersetOf({"Running", "Successful"}));
  });
}

TEST_F(ResourcePhases, OfWorkflowsAreReportedInOrder) {
  prepare(shared_cluster());
  shared_workflows();
  shared_cluster().create_namespace(ns);
  const PhaseHistory good(shared_cluster(), kRuntime, "workflows", "good");
  const PhaseHistory bad(shared_cluster(), kRuntime, "workflows", "bad");
  play(shared_cluster(), [&](ResourcePhasesBed& bed) -> Task<> {
    co_await bed.start();
    const auto submit = [&](std::string where, std::string name, std::string spec) -> Task<> {
      co_await bed.aside([=] { shared_workflows().submit(where, name, spec); });
    };
    co_await submit(ns, "elsewhere", PeerWorkflows::one_wait());
    co_await submit(kRuntime, "good", PeerWorkflows::one_step());
    co_await submit(kRuntime, "bad", PeerWorkflows::one_wait());
    CO_ASSERT_TRUE(co_await bed.reported("Workflow", "good", "Succeeded"));
    CO_ASSERT_TRUE(co_await bed.reported("Workflow", "bad", "Running"));
    const auto reply = co_await bed.aside([] {
      return shared_workflows().request(
          PeerWorkflows::Auth::server, "PUT",
          std::string("/api/v1/workflows/") + kRuntime + "/bad/terminate", "{}");
    });
    CO_ASSERT_EQ(reply.status, 200);
    CO_ASSERT_TRUE(co_await bed.reported("Workflow", "bad", "Failed"));
    CO_ASSERT_TRUE(co_await bed.quiet());
    for (const auto* history : {&good, &bad}) {
      const auto phases = co_await bed.aside([&] { return history->phases(); });
      EXPECT_EQ(bed.phases("Workflow", history->name()), phases);
    }
    EXPECT_THAT(bed.phases("Workflow", "good"), Contains("Running"));

    for (const auto* name : {"good", "bad"}) {
      co_await bed.kubectl({"--namespace", kRuntime, "delete", "workflow", name});
      EXPECT_TRUE(co_await bed.reported_gone("Workflow", name) != nullptr) << name;
    }
    EXPECT_THAT(bed.platform.find("Workflow", "elsewhere"), IsEmpty());
  });
}

}  // namespace
}  // namespace gitops::test
