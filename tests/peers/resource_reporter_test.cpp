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
  play([](ResourceReporterBed& bed) -> Task<> {
    bed.start_daemon();
    CO_ASSERT_TRUE(co_await bed.daemon->wait_for_readyz("ready\n"));
    const auto status = bed.daemon->status();
    EXPECT_EQ(status.state("rollouts"), "unavailable") << status;
    EXPECT_EQ(status.message("rollouts"), "not served");
    // ReplicaSets of others are nobody's concern here.
    bed.cluster.kubectl_ok(
        {"-n", "shop", "create", "deployment", "other", "--image=example.test/x"});

    PeerRollouts rollouts(bed.cluster);
    bed.apply(PeerRollouts::canary("shop", "example.test/shop:1"));
    CO_ASSERT_TRUE(co_await bed.phase("Rollout", "shop", "Healthy") != nullptr);
    bed.apply(PeerRollouts::canary("shop", "example.test/shop:2"));
    CO_ASSERT_TRUE(co_await bed.phase("Rollout", "shop", "Paused") != nullptr);
    rollouts.promote("shop", "shop");
    const auto paused = bed.platform.reports().size();
    CO_ASSERT_TRUE(co_await bed.phase("Rollout", "shop", "Healthy", paused) != nullptr);
    bed.cluster.kubectl_ok({"-n", "shop", "create", "-f", "-"},
                           PeerRollouts::job_analysis("check"));
    CO_ASSERT_TRUE(co_await bed.phase("AnalysisRun", "check", "Successful") != nullptr);
    CO_ASSERT_TRUE(co_await bed.is_quiet());
    bed.expect_up_to_date("rollouts", "shop");
    bed.expect_up_to_date("analysisruns", "check");
    std::set<std::string> replica_sets;
    for (const auto* report : bed.platform.find("ReplicaSet", "")) {
      replica_sets.insert(report->name());
      EXPECT_EQ(report->object.at("/metadata/ownerReferences/0/kind"_json_pointer), "Rollout");
    }
    EXPECT_EQ(replica_sets.size(), 2U);
    for (const auto& name : replica_sets) bed.expect_up_to_date("replicasets", name);

    // Nothing new for a restart but what happened meanwhile.
    EXPECT_EQ(co_await bed.daemon->stop(), 0);
    auto first = bed.platform.reports().size();
    bed.start_daemon();
    CO_ASSERT_TRUE(co_await bed.daemon->wait_for_readyz("ready\n"));
    CO_ASSERT_TRUE(co_await bed.is_quiet());
    EXPECT_EQ(bed.platform.reports().size(), first);
    EXPECT_EQ(co_await bed.daemon->stop(), 0);
    bed.cluster.kubectl_ok({"-n", "shop", "delete", "analysisrun", "check"});
    bed.start_daemon();
    CO_ASSERT_TRUE(co_await bed.gone("AnalysisRun", "check", first));
    EXPECT_EQ(bed.platform.reports().size(), first + 1);

    // The garbage collector takes the ReplicaSets; the definition takes the rest.
    bed.apply(PeerRollouts::canary("last", "example.test/shop:1"));
    CO_ASSERT_TRUE(co_await bed.phase("Rollout", "last", "Healthy") != nullptr);
    first = bed.platform.reports().size();
    bed.cluster.kubectl_ok({"-n", "shop", "delete", "rollout", "shop"});
    CO_ASSERT_TRUE(co_await bed.gone("Rollout", "shop", first));
    for (const auto& name : replica_sets) {
      EXPECT_TRUE(co_await bed.gone("ReplicaSet", name, first)) << name;
    }
    bed.cluster.kubectl_ok({"delete", "crd", "rollouts.argoproj.io", "--wait=false"});
    CO_ASSERT_TRUE(co_await bed.gone("Rollout", "last", first));
    CO_ASSERT_TRUE(co_await bed.daemon->wait_for_log("the kind is not served"));
    CO_ASSERT_TRUE(co_await bed.daemon->wait_for_readyz("ready\n"));
  });
}

TEST_F(ResourceReporterPeers, AWorkflowIsReportedInItsOwnNamespaceAlone) {
  play([](ResourceReporterBed& bed) -> Task<> {
    const PeerWorkflows workflows(bed.cluster);
    bed.start_daemon();
    CO_ASSERT_TRUE(co_await bed.daemon->wait_for_readyz("ready\n"));
    workflows.submit("shop", "elsewhere", PeerWorkflows::one_step());
    workflows.submit(kNamespace, "steps", PeerWorkflows::one_step());
    workflows.submit(kNamespace, "waits", PeerWorkflows::one_wait());
    CO_ASSERT_TRUE(co_await bed.phase("Workflow", "steps", "Succeeded") != nullptr);
    CO_ASSERT_TRUE(co_await bed.phase("Workflow", "waits", "Running") != nullptr);
    EXPECT_THAT(bed.platform.find("Workflow", "elsewhere"), IsEmpty());
    const auto first = bed.platform.reports().size();
    bed.cluster.kubectl_ok({"-n", kNamespace, "delete", "workflow", "waits"});
    CO_ASSERT_TRUE(co_await bed.gone("Workflow", "waits", first));
  });
}

TEST_F(ResourceReporterPeers, AManagedClusterIsReportedWithWhatArgoCdsSecretSays) {
  play([](ResourceReporterBed& bed) -> Task<> {
    PeerCluster managed;
    managed.apply_crds("argo-rollouts");
    const auto token = make_account(managed);
    managed.create_namespace("shop");
    managed.kubectl_ok({"-n", "shop", "apply", "-f", "-"},
                       PeerRollouts::canary("far", "example.test/shop:1"));
    bed.start_daemon({{"REPORT_MANAGED_CLUSTERS", "true"}});
    CO_ASSERT_TRUE(co_await bed.daemon->wait_for_readyz("ready\n"));
    const json config = {
        {"bearerToken", token},
        {"tlsClientConfig", {{"caData", base64_encode(read_file(managed.ca_file()))}}}};
    bed.cluster.apply(
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
    const auto* report = co_await bed.platform.wait_for(told, soon(kTimeLimit));
    CO_ASSERT_TRUE(report != nullptr);
    EXPECT_EQ(report->data["cluster"], managed.server_url());
    auto first = bed.platform.reports().size();
    managed.stop_api_server(PeerCluster::Stop::kill);
    CO_ASSERT_TRUE(co_await bed.daemon->wait_for_log("list or watch failed"));
    CO_ASSERT_TRUE(co_await bed.daemon->wait_for_readyz("ready\n"));
    managed.start_api_server();
    managed.kubectl_ok({"-n", "shop", "delete", "rollout", "far"});
    CO_ASSERT_TRUE(co_await bed.gone("Rollout", "far", first));
    EXPECT_THAT(
        bed.daemon->log() + bed.daemon->get("/statusz").body + bed.daemon->get(kStatusPath).body,
        Not(HasSubstr(token)));
  });
}

}  // namespace
}  // namespace gitops::test
