// The real event-reporter in mode `resource` between doubles of Kubernetes and the control plane; once with the real
// control plane.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "daemons/control_plane_bed.hpp"
#include "daemons/reporter_process.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "e2e/resource_reporter_harness.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/tcp_relay.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
namespace r = k8s::resources;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

TEST(ResourceReporter, EachKindIsReportedFromItsBirthToItsEnd) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start();
    for (const auto* type : {&r::kRollouts, &r::kAnalysisRuns, &r::kReplicaSets, &r::kWorkflows}) {
      auto made = type == &r::kReplicaSets ? replica_set("web", "Rollout") : object(*type, "web");
      made["metadata"]["managedFields"] = json::array({{{"manager", "kubectl"}}});
      made["metadata"]["annotations"] = {{"note", "a \"quoted\" <text> of \\ and \u00e4"}};
      auto first = harness.platform.reports().size();
      const auto stored = harness.kube.put(*type, made);
      CO_ASSERT_TRUE(co_await harness.wait_for(type->kind + " web", first)) << type->kind;
      const auto& report = harness.platform.reports()[first];
      auto expected = stored;
      expected["metadata"].erase("managedFields");
      EXPECT_EQ(report.object, expected);
      EXPECT_EQ(report.data.size(), 1U) << "as the existing reporters: nothing but the object";
      EXPECT_EQ(report.data["object"].get<std::string>().front(), '{');
      EXPECT_THAT(report.event_id,
                  ::testing::StartsWith(stored["metadata"]["uid"].get<std::string>() + "/"));
      EXPECT_THAT(report.event_id, HasSubstr("/" + std::to_string(report.sequence) + "/"));
      EXPECT_GT(report.sequence, 0U);

      // Only relevant fields count as a change.
      first = harness.platform.reports().size();
      made["metadata"]["managedFields"] = json::array({{{"manager", "argo"}}});
      harness.kube.put(*type, made);
      made["status"]["phase"] = "Succeeded";
      made["status"]["conditions"] = json::array({{{"type", "Done"}}});
      harness.kube.put(*type, made);
      CO_ASSERT_TRUE(co_await harness.wait_for(type->kind + " web", first));
      EXPECT_EQ(harness.platform.reports()[first].object["status"]["phase"], "Succeeded");

      first = harness.platform.reports().size();
      CO_ASSERT_TRUE(harness.kube.remove(*type, {"shop", "web"}));
      CO_ASSERT_TRUE(co_await harness.wait_for(type->kind + " web gone", first));
      const auto& gone = harness.platform.reports()[first];
      EXPECT_EQ(gone.object["apiVersion"], type->api_version());
      EXPECT_TRUE(gone.object["metadata"]["deletionTimestamp"].is_string());
      EXPECT_EQ(gone.object["metadata"]["uid"], stored["metadata"]["uid"]);
      EXPECT_THAT(gone.event_id, ::testing::EndsWith("/gone"));
      EXPECT_GT(gone.sequence, report.sequence);
    }
    EXPECT_TRUE(co_await harness.is_quiet());
    EXPECT_EQ(harness.platform.reports().size(), 12U);
  });
}

TEST(ResourceReporter, OfReplicaSetsOnlyThoseOfRolloutsAreReported) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    harness.kube.put(r::kReplicaSets, replica_set("listed", "Rollout"));
    harness.kube.put(r::kReplicaSets, replica_set("of-deployment", "Deployment"));
    harness.start_daemon();
    CO_ASSERT_TRUE(co_await harness.wait_for("ReplicaSet listed"));
    // Items of a list carry no kind.
    EXPECT_EQ(harness.platform.reports()[0].object["apiVersion"], "apps/v1");
    harness.kube.put(r::kReplicaSets, replica_set("of-deployment-2", "Deployment"));
    harness.kube.put(r::kReplicaSets, object(r::kReplicaSets, "of-nobody"));
    harness.kube.put(r::kReplicaSets, replica_set("watched", "Rollout"));
    CO_ASSERT_TRUE(co_await harness.wait_for("ReplicaSet watched"));
    CO_ASSERT_TRUE(harness.kube.remove(r::kReplicaSets, {"shop", "of-nobody"}));
    harness.kube.put(r::kRollouts, object(r::kRollouts, "last"));
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout last"));
    EXPECT_THAT(harness.events(),
                ElementsAre("ReplicaSet listed", "ReplicaSet watched", "Rollout last"));
    EXPECT_EQ(co_await harness.daemon->stop(), 0);

    harness.start_daemon({{"REPORT_ALL_REPLICASETS", "true"}, {"REPORT_KINDS", "replicasets"}});
    CO_ASSERT_TRUE(co_await harness.wait_for("ReplicaSet of-deployment-2", 3));
    CO_ASSERT_TRUE(co_await harness.wait_for("ReplicaSet of-deployment", 3));
    EXPECT_TRUE(co_await harness.is_quiet());
    EXPECT_EQ(harness.platform.reports().size(), 5U);
  });
}

TEST(ResourceReporter, OnlyConfiguredNamespacesHaveTheirWorkflowsReported) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    for (const auto* ns : {"argocd", "shop", "other"}) {
      harness.kube.put(r::kWorkflows, object(r::kWorkflows, std::string("in-") + ns,
                                             {{"metadata", {{"namespace", ns}}}}));
      harness.kube.put(r::kRollouts, object(r::kRollouts, std::string("in-") + ns,
                                            {{"metadata", {{"namespace", ns}}}}));
    }
    harness.start_daemon({{"WORKFLOW_NAMESPACES", ""}});
    CO_ASSERT_TRUE(co_await harness.platform.wait_for_count(4, soon()));
    EXPECT_TRUE(co_await harness.is_quiet());
    EXPECT_THAT(harness.events(), UnorderedElementsAre("Workflow in-argocd", "Rollout in-argocd",
                                                       "Rollout in-shop", "Rollout in-other"));
    EXPECT_EQ(co_await harness.daemon->stop(), 0);
    harness.start_daemon();
    CO_ASSERT_TRUE(co_await harness.wait_for("Workflow in-shop", 4));
    EXPECT_TRUE(co_await harness.is_quiet());
    EXPECT_EQ(harness.platform.reports().size(), 5U);
  });
}

TEST(ResourceReporter, ARestartReportsWhatChangedMeanwhileAndNothingElse) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start();
    for (const auto* name : {"same", "changed", "deleted", "renewed"}) {
      harness.kube.put(r::kRollouts, object(r::kRollouts, name));
    }
    CO_ASSERT_TRUE(co_await harness.platform.wait_for_count(4, soon()));
    EXPECT_EQ(co_await harness.daemon->stop(), 0);
    harness.start_daemon();
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
    EXPECT_TRUE(co_await harness.is_quiet());
    EXPECT_EQ(harness.platform.reports().size(), 4U);
    EXPECT_EQ(co_await harness.daemon->stop(), 0);

    harness.kube.put(r::kRollouts,
                     object(r::kRollouts, "changed", {{"status", {{"phase", "Paused"}}}}));
    CO_ASSERT_TRUE(harness.kube.remove(r::kRollouts, {"shop", "deleted"}));
    CO_ASSERT_TRUE(harness.kube.remove(r::kRollouts, {"shop", "renewed"}));
    harness.kube.put(r::kRollouts, object(r::kRollouts, "renewed"));
    harness.start_daemon();
    CO_ASSERT_TRUE(co_await harness.platform.wait_for_count(8, soon()));
    EXPECT_TRUE(co_await harness.is_quiet());
    EXPECT_THAT(harness.events(4), UnorderedElementsAre("Rollout changed", "Rollout deleted gone",
                                                        "Rollout renewed gone", "Rollout renewed"));
    const auto gone = harness.platform.find("Rollout", "deleted", 4);
    CO_ASSERT_EQ(gone.size(), 1U);
    EXPECT_TRUE(gone[0]->object["metadata"]["deletionTimestamp"].is_string());
    EXPECT_EQ(gone[0]->object["metadata"]["namespace"], "shop");
  });
}

TEST(ResourceReporter, AKindIsPickedUpWhenItsDefinitionAppears) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    harness.kube.remove_type(r::kRollouts);
    harness.start_daemon();
    // A missing kind is not an error.
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
    const auto status = harness.daemon->status();
    EXPECT_EQ(status.state("rollouts"), "unavailable") << status;
    EXPECT_EQ(status.message("rollouts"), "not served");
    harness.kube.put(r::kWorkflows, object(r::kWorkflows, "first"));
    CO_ASSERT_TRUE(co_await harness.wait_for("Workflow first"));

    harness.kube.add_type(r::kRollouts);
    harness.kube.put(r::kRollouts, object(r::kRollouts, "web"));
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout web"));

    // The objects go with their definition. A new definition starts with new objects.
    harness.kube.remove_type(r::kRollouts);
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout web gone"));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_log("the kind is not served", 2));
    // A kind without a watch must not count as a silent watch.
    EXPECT_THAT(harness.daemon->get("/metrics").body,
                ContainsRegex("watch_last_event_timestamp_seconds.cluster=\"in-cluster\",resource="
                              "\"rollouts\". [Nn]a[Nn]"));
    harness.kube.add_type(r::kRollouts);
    harness.kube.put(r::kRollouts, object(r::kRollouts, "again"));
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout again"));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
    EXPECT_THAT(harness.events(),
                ElementsAre("Workflow first", "Rollout web", "Rollout web gone", "Rollout again"));
  });
}

TEST(ResourceReporter, ManagedClustersAreReportedAsLongAsTheirSecretIsThere) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start({{"REPORT_MANAGED_CLUSTERS", "true"}});
    harness.managed.put(r::kRollouts, object(r::kRollouts, "far"));
    harness.managed.put(r::kWorkflows, object(r::kWorkflows, "not-ours"));
    harness.kube.put(r::kRollouts,
                     object(r::kRollouts, "far", {{"status", {{"phase", "Paused"}}}}));
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout far"));
    harness.put_cluster("prod", {{"bearerToken", kManagedToken}});
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout far @managed"));
    const auto& report = harness.platform.reports().back();
    EXPECT_EQ(report.object["status"]["phase"], "Running");
    EXPECT_EQ(report.data["cluster"], "http://127.0.0.1:" + std::to_string(harness.relay->port()));
    harness.managed.put(r::kReplicaSets, replica_set("far-1", "Rollout"));
    CO_ASSERT_TRUE(co_await harness.wait_for("ReplicaSet far-1 @managed"));
    CO_ASSERT_TRUE(harness.managed.remove(r::kReplicaSets, {"shop", "far-1"}));
    CO_ASSERT_TRUE(co_await harness.wait_for("ReplicaSet far-1 gone @managed"));
    const auto is_prod = [](const json& entry) {
      return entry["name"].get<std::string>().starts_with("cluster prod (");
    };
    EXPECT_EQ(harness.daemon->status().count_if(is_prod), 1U) << harness.daemon->status();

    // A Secret without a real change has no effect. Removing the cluster reports no deletions.
    harness.put_cluster("prod", {{"bearerToken", kManagedToken}});
    CO_ASSERT_TRUE(harness.kube.remove(r::kSecrets, {"argocd", "cluster-prod"}));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_log("a cluster is not managed any more"));
    harness.kube.put(r::kRollouts, object(r::kRollouts, "near"));
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout near"));
    EXPECT_TRUE(co_await harness.is_quiet());
    EXPECT_THAT(harness.events(), Not(Contains("Rollout far gone @managed")));
    EXPECT_EQ(harness.platform.reports().size(), 5U);

    // After its return the cluster's objects are reported again.
    harness.put_cluster("prod", {{"bearerToken", kManagedToken}});
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout far @managed", 5));
    EXPECT_THAT(harness.daemon->log(), Not(HasSubstr("canary")));
  });
}

TEST(ResourceReporter, OnlyTheNamedClusterSecretsAreRead) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start(
        {{"REPORT_MANAGED_CLUSTERS", "true"}, {"CLUSTER_SECRETS", "cluster-prod,cluster-later"}});
    harness.managed.put(r::kRollouts, object(r::kRollouts, "far"));
    harness.put_cluster("other", "http://127.0.0.1:1", R"({"bearerToken":"canary-other"})");
    harness.put_cluster("prod", {{"bearerToken", kManagedToken}});
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout far @managed"));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
    const auto status = harness.daemon->status();
    EXPECT_EQ(status.count("managed clusters", "secrets"), 1) << status;
    EXPECT_EQ(status.count("managed clusters", "secrets_of"), 1) << status;
    EXPECT_THAT(harness.daemon->log(), Not(HasSubstr("canary")));
    CO_ASSERT_TRUE(harness.kube.remove(r::kSecrets, {"argocd", "cluster-prod"}));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_log("a cluster is not managed any more"));
  });
}

TEST(ResourceReporter, AManagedClusterThatCannotBeUsedHoldsUpNoOther) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    harness.relay->hold();
    harness.put_cluster("far", {{"bearerToken", kManagedToken}});
    harness.put_cluster("exec", "https://exec.example.com",
                        R"({"execProviderConfig":{"command":"aws"}})");
    harness.put_cluster("broken", "https://broken.example.com", "canary-broken");
    harness.put_cluster("unreachable", "http://127.0.0.1:1", "{}");
    harness.put_cluster("own", "https://kubernetes.default.svc", "{}");
    harness.managed.put(r::kRollouts, object(r::kRollouts, "far"));
    harness.start_daemon({{"REPORT_MANAGED_CLUSTERS", "true"}});
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
    for (int i = 0; i < 30; ++i) {
      harness.kube.put(r::kRollouts, object(r::kRollouts, "near-" + std::to_string(i)));
    }
    CO_ASSERT_TRUE(co_await harness.platform.wait_for_count(30, soon()));
    const auto status =
        harness.daemon->get("/statusz").body + harness.daemon->get(kStatusPath).body;
    const auto entries = harness.daemon->status();
    EXPECT_EQ(entries.state("managed clusters"), "degraded") << entries;
    EXPECT_EQ(entries.state("skipped cluster-exec (exec)"), "failed") << entries;
    EXPECT_THAT(entries.message("skipped cluster-exec (exec)"),
                StartsWith("its credentials come from"));
    EXPECT_EQ(entries.state("skipped cluster-broken (broken)"), "failed") << entries;
    EXPECT_THAT(status, Not(HasSubstr("kubernetes.default.svc")));
    EXPECT_THAT(harness.events(), Not(Contains("Rollout far @managed")));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_log("discovery of the cluster failed"));

    harness.relay->release();
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout far @managed"));
    EXPECT_THAT(harness.daemon->log() + status, Not(HasSubstr("canary")));
  });
}

TEST(ResourceReporter, AnOutageOfTheControlPlaneLosesNothing) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start();
    harness.kube.put(r::kRollouts, object(r::kRollouts, "deleted"));
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout deleted"));
    harness.platform.fail_next(12, 503);
    for (int i = 0; i < 20; ++i) {
      const auto name = "web-" + std::to_string(i);
      harness.kube.put(r::kRollouts, object(r::kRollouts, name));
      harness.kube.put(r::kReplicaSets, replica_set(name, "Rollout"));
    }
    CO_ASSERT_TRUE(harness.kube.remove(r::kRollouts, {"shop", "deleted"}));
    CO_ASSERT_TRUE(co_await harness.platform.wait_for_count(42, soon()));
    EXPECT_TRUE(co_await harness.is_quiet());
    EXPECT_EQ(harness.platform.reports().size(), 42U);
    EXPECT_THAT(harness.events(), Contains("Rollout deleted gone"));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
  });
}

TEST(ResourceReporter, ReplicasShareTheObjectsOutByLeasesOfTheirOwn) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start({{"EVENT_REPORTER_REPLICAS", "2"}, {"EVENT_REPORTER_SHARD", "0"}});
    std::vector<std::string> ours;
    for (int i = 0; i < 20; ++i) {
      const auto name = "web-" + std::to_string(i);
      if (fnv1a_32(name) % 2 == 0) ours.push_back("Rollout " + name);
      harness.kube.put(r::kRollouts, object(r::kRollouts, name));
    }
    CO_ASSERT_TRUE(co_await harness.platform.wait_for_count(ours.size(), soon()));
    auto first = harness.events();
    first.resize(ours.size());
    EXPECT_THAT(first, ::testing::UnorderedElementsAreArray(ours));
    // The other shard has no owner, so this replica stands in for it.
    CO_ASSERT_TRUE(co_await harness.platform.wait_for_count(20, soon()));
    EXPECT_TRUE(co_await harness.is_quiet());
    EXPECT_EQ(harness.platform.reports().size(), 20U);
    for (const auto* shard : {"0", "1"}) {
      EXPECT_TRUE(harness.kube.find(r::kLeases,
                                    {"argocd", std::string("event-reporter-resource-") + shard}));
      EXPECT_FALSE(
          harness.kube.find(r::kLeases, {"argocd", std::string("event-reporter-app-") + shard}));
    }
  });
}

TEST(ResourceReporter, AC24_AMalformedObjectIsSetAsideWhileOthersGoOn) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start();
    CO_ASSERT_TRUE(co_await harness.daemon->wait_until_caught_up());
    for (const std::string& line : std::initializer_list<std::string>{
             "nonsense\n", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"cut\n",
             // The decoder accepts its fields, but an event of this object would be malformed.
             "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"odd\",\"namespace\":"
             "\"shop\","
             "\"uid\":\"u\",\"resourceVersion\":\"999999\"},\"spec\":{\"a\":tru}}}\n"}) {
      harness.kube.send_on_watches(r::kRollouts, line);
    }
    harness.kube.put(r::kRollouts, object(r::kRollouts, "web"));
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout web"));
    EXPECT_THAT(harness.events(), ElementsAre("Rollout web"));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_log("an object cannot be reported"));
  });
}

TEST(ResourceReporter, AWorkflowIsShownByTheControlPlane) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    const ControlPlaneBed bed;
    co_await harness.start_doubles();
    write_file(harness.folder / "platform-token", kProdToken);
    auto workflow = harness.kube.put(r::kWorkflows, object(r::kWorkflows, "build"));
    const auto phase = [&]() -> std::string {
      const auto shown = bed.ask(
          "query W($uid: String!){workflow(uid: $uid){metadata{name runtime} status{phase}}}",
          {{"uid", workflow["metadata"]["uid"]}}, kBobKey);
      return shown.is_null() ? "absent" : shown["status"]["phase"].get<std::string>();
    };
    harness.start_daemon(
        {{"CODEFRESH_URL", bed.url()}, {"CODEFRESH_SSL_CERT_PATH", bed.ca_file().string()}});
    CO_ASSERT_TRUE(co_await eventually([&] { return phase() == "Running"; }, "the Workflow"));
    workflow["status"]["phase"] = "Succeeded";
    harness.kube.put(r::kWorkflows, workflow);
    CO_ASSERT_TRUE(co_await eventually([&] { return phase() == "Succeeded"; }, "its phase"));
    const auto is_listed = [&bed] {
      return !bed.ask("{workflows{edges{node{metadata{name}}}}}", json::object(), kBobKey)["edges"]
                  .empty();
    };
    EXPECT_TRUE(is_listed());
    harness.kube.remove(r::kWorkflows, {"shop", "build"});
    CO_ASSERT_TRUE(co_await eventually([&] { return !is_listed(); }, "its end"));
    EXPECT_EQ(phase(), "Succeeded") << "its page stays";
  });
}

TEST(ResourceReporter, AnObjectIsReportedAgainWhenTheControlPlaneAsks) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start();
    const auto web = harness.kube.put(r::kRollouts, object(r::kRollouts, "web"));
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout web"));
    harness.platform.ask_again(web["metadata"]["uid"].get<std::string>() + ";7");
    harness.kube.put(r::kRollouts, object(r::kRollouts, "cart"));
    const auto events_of = [&harness](const char* name) {
      return harness.platform.find("Rollout", name);
    };
    CO_ASSERT_TRUE(
        co_await eventually([&] { return events_of("web").size() == 2; }, "the Rollout once more"));
    EXPECT_TRUE(co_await harness.is_quiet());
    const auto events = events_of("web");
    CO_ASSERT_TRUE(events.size() == 2);
    EXPECT_GT(events[1]->sequence, events[0]->sequence);
    EXPECT_NE(events[1]->event_id, events[0]->event_id);
    EXPECT_EQ(events[1]->object, events[0]->object);
    EXPECT_EQ(events_of("cart").size(), 1U);
  });
}

TEST(ResourceReporter, ALedgerOfAnotherModeIsNotTouched) {
  play([](ResourceReporterHarness& harness) -> Task<> {
    co_await harness.start();
    harness.kube.put(r::kRollouts, object(r::kRollouts, "web"));
    CO_ASSERT_TRUE(co_await harness.wait_for("Rollout web"));
    EXPECT_EQ(co_await harness.daemon->stop(), 0);
    harness.start_daemon({{"REPORTER_MODE", "app"}});
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_log("is the ledger of mode resource"));
    EXPECT_EQ(harness.daemon->process().wait(std::chrono::seconds(20)), 1);
    harness.start_daemon();
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
    EXPECT_TRUE(co_await harness.is_quiet());
    EXPECT_EQ(harness.platform.reports().size(), 1U);
  });
}

}  // namespace
}  // namespace gitops::test
