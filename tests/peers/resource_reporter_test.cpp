// The event-reporter in mode `resource` with real Kubernetes, Rollouts and Workflows around it and
// a control plane that records. It has the permissions that it needs and no others.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "daemons/reporter_process.hpp"
#include "doubles/fake_platform.hpp"
#include "peers/peer_cluster.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "peers/resource_reporter_bed.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

TEST_F(ResourceReporterPeers, ACanaryIsReportedFromItsDefinitionsArrivalToItsEnd) {
  play([](ResourceReporterBed& world) -> Task<> {
    world.start_daemon();
    CO_ASSERT_TRUE(co_await world.daemon->wait_for_readyz("ready\n"));
    const auto status = world.daemon->status();
    EXPECT_EQ(status.state("rollouts"), "unavailable") << status;
    EXPECT_EQ(status.message("rollouts"), "not served");
    // ReplicaSets of others are nobody's concern here.
    world.cluster.kubectl_ok(
        {"-n", "shop", "create", "deployment", "other", "--image=example.test/x"});

    PeerRollouts rollouts(world.cluster);
    world.apply(PeerRollouts::canary("shop", "example.test/shop:1"));
    CO_ASSERT_TRUE(co_await world.phase("Rollout", "shop", "Healthy") != nullptr);
    world.apply(PeerRollouts::canary("shop", "example.test/shop:2"));
    CO_ASSERT_TRUE(co_await world.phase("Rollout", "shop", "Paused") != nullptr);
    rollouts.promote("shop", "shop");
    const auto paused = world.platform.reports().size();
    CO_ASSERT_TRUE(co_await world.phase("Rollout", "shop", "Healthy", paused) != nullptr);
    world.cluster.kubectl_ok({"-n", "shop", "create", "-f", "-"},
                             PeerRollouts::job_analysis("check"));
    CO_ASSERT_TRUE(co_await world.phase("AnalysisRun", "check", "Successful") != nullptr);
    CO_ASSERT_TRUE(co_await world.is_quiet());
    world.expect_up_to_date("rollouts", "shop");
    world.expect_up_to_date("analysisruns", "check");
    std::set<std::string> replica_sets;
    for (const auto* report : world.platform.find("ReplicaSet", "")) {
      replica_sets.insert(report->name());
      EXPECT_EQ(report->object.at("/metadata/ownerReferences/0/kind"_json_pointer), "Rollout");
    }
    EXPECT_EQ(replica_sets.size(), 2U);
    for (const auto& name : replica_sets) world.expect_up_to_date("replicasets", name);

    // Nothing new for a restart but what happened meanwhile.
    EXPECT_EQ(co_await world.daemon->stop(), 0);
    auto first = world.platform.reports().size();
    world.start_daemon();
    CO_ASSERT_TRUE(co_await world.daemon->wait_for_readyz("ready\n"));
    CO_ASSERT_TRUE(co_await world.is_quiet());
    EXPECT_EQ(world.platform.reports().size(), first);
    EXPECT_EQ(co_await world.daemon->stop(), 0);
    world.cluster.kubectl_ok({"-n", "shop", "delete", "analysisrun", "check"});
    world.start_daemon();
    CO_ASSERT_TRUE(co_await world.gone("AnalysisRun", "check", first));
    EXPECT_EQ(world.platform.reports().size(), first + 1);

    // The garbage collector takes the ReplicaSets; the definition takes the rest.
    world.apply(PeerRollouts::canary("last", "example.test/shop:1"));
    CO_ASSERT_TRUE(co_await world.phase("Rollout", "last", "Healthy") != nullptr);
    first = world.platform.reports().size();
    world.cluster.kubectl_ok({"-n", "shop", "delete", "rollout", "shop"});
    CO_ASSERT_TRUE(co_await world.gone("Rollout", "shop", first));
    for (const auto& name : replica_sets) {
      EXPECT_TRUE(co_await world.gone("ReplicaSet", name, first)) << name;
    }
    world.cluster.kubectl_ok({"delete", "crd", "rollouts.argoproj.io", "--wait=false"});
    CO_ASSERT_TRUE(co_await world.gone("Rollout", "last", first));
    CO_ASSERT_TRUE(co_await world.daemon->wait_for_log("the kind is not served"));
    CO_ASSERT_TRUE(co_await world.daemon->wait_for_readyz("ready\n"));
  });
}

TEST_F(ResourceReporterPeers, AWorkflowIsReportedInItsOwnNamespaceAlone) {
  play([](ResourceReporterBed& world) -> Task<> {
    const PeerWorkflows workflows(world.cluster);
    world.start_daemon();
    CO_ASSERT_TRUE(co_await world.daemon->wait_for_readyz("ready\n"));
    workflows.submit("shop", "elsewhere", PeerWorkflows::one_step());
    workflows.submit(kNamespace, "steps", PeerWorkflows::one_step());
    workflows.submit(kNamespace, "waits", PeerWorkflows::one_wait());
    CO_ASSERT_TRUE(co_await world.phase("Workflow", "steps", "Succeeded") != nullptr);
    CO_ASSERT_TRUE(co_await world.phase("Workflow", "waits", "Running") != nullptr);
    EXPECT_THAT(world.platform.find("Workflow", "elsewhere"), IsEmpty());
    const auto first = world.platform.reports().size();
    world.cluster.kubectl_ok({"-n", kNamespace, "delete", "workflow", "waits"});
    CO_ASSERT_TRUE(co_await world.gone("Workflow", "waits", first));
  });
}

TEST_F(ResourceReporterPeers, AManagedClusterIsReportedWithWhatArgoCdsSecretSays) {
  play([](ResourceReporterBed& world) -> Task<> {
    PeerCluster managed;
    managed.apply_crds("argo-rollouts");
    const auto token = make_account(managed);
    managed.create_namespace("shop");
    managed.kubectl_ok({"-n", "shop", "apply", "-f", "-"},
                       PeerRollouts::canary("far", "example.test/shop:1"));
    world.start_daemon({{"REPORT_MANAGED_CLUSTERS", "true"}});
    CO_ASSERT_TRUE(co_await world.daemon->wait_for_readyz("ready\n"));
    const json config = {
        {"bearerToken", token},
        {"tlsClientConfig", {{"caData", base64_encode(read_file(managed.ca_file()))}}}};
    world.cluster.apply(
        json({{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"metadata",
               {{"name", "cluster-far"},
                {"namespace", kNamespace},
                {"labels", {{"argocd.argoproj.io/secret-type", "cluster"}}}}},
              {"stringData",
               {{"name", "far"}, {"server", managed.server_url()}, {"config", config.dump()}}}})
            .dump());
    const auto told = [](const FakePlatform::Report& report) { return report.name() == "far"; };
    const auto* report = co_await world.platform.wait_for(told, soon(kTimeLimit));
    CO_ASSERT_TRUE(report != nullptr);
    EXPECT_EQ(report->data["cluster"], managed.server_url());
    auto first = world.platform.reports().size();
    managed.stop_api_server(PeerCluster::Stop::kill);
    CO_ASSERT_TRUE(co_await world.daemon->wait_for_log("list or watch failed"));
    CO_ASSERT_TRUE(co_await world.daemon->wait_for_readyz("ready\n"));
    managed.start_api_server();
    managed.kubectl_ok({"-n", "shop", "delete", "rollout", "far"});
    CO_ASSERT_TRUE(co_await world.gone("Rollout", "far", first));
    EXPECT_THAT(world.daemon->log() + world.daemon->get("/statusz").body +
                    world.daemon->get(kStatusPath).body,
                Not(HasSubstr(token)));
  });
}

}  // namespace
}  // namespace gitops::test
