#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "daemons/reporter_process.hpp"
#include "doubles/fake_platform.hpp"
#include "peers/peer_cluster.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

// The event-reporter in mode `resource` with real Kubernetes, Rollouts and Workflows around it and
// a control plane that records. It has the permissions that it needs and no others.
namespace gitops::test {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr auto kLimit = std::chrono::seconds(200);
constexpr auto kTimeLimit = std::chrono::seconds(60);
constexpr const char* kNamespace = "runtime";
constexpr const char* kToken = "peers-platform-token";
// Rights on all that is reported, and on Secrets where the runtime is.
constexpr const char* kRoles = R"(
apiVersion: v1
kind: ServiceAccount
metadata: {name: reporter, namespace: runtime}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reporter}
rules:
  - {apiGroups: [argoproj.io], resources: [rollouts, analysisruns], verbs: [get, list, watch]}
  - {apiGroups: [apps], resources: [replicasets], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reporter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reporter}
subjects: [{kind: ServiceAccount, name: reporter, namespace: runtime}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reporter, namespace: runtime}
rules:
  - {apiGroups: [argoproj.io], resources: [workflows], verbs: [get, list, watch]}
  - {apiGroups: [""], resources: [secrets], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reporter, namespace: runtime}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reporter}
subjects: [{kind: ServiceAccount, name: reporter, namespace: runtime}]
)";

// The token of an account with the permissions that a reporter needs.
std::string make_account(PeerCluster& cluster) {
  cluster.create_namespace(kNamespace);
  cluster.apply(kRoles);
  return cluster.service_account_token(kNamespace, "reporter");
}

class Bed {
 public:
  explicit Bed(const Executor& executor) : platform(executor, {.token = kToken}) {
    write_file(folder / "platform-token", kToken);
    kubeconfig_ = cluster.write_kubeconfig("reporter", make_account(cluster));
    cluster.create_namespace("shop");
  }

  void start_daemon(const Environment& more = {}) {
    Environment environment{{"REPORTER_MODE", "resource"},
                            {"POD_NAMESPACE", kNamespace},
                            {"KUBECONFIG", kubeconfig_.string()},
                            {"LEDGER_FILE", (folder / "ledger.db").string()},
                            {"CODEFRESH_URL", platform.url().to_string()},
                            {"LOG_LEVEL", "debug"}};
    for (const auto& [name, value] : more) environment[name] = value;
    daemon.emplace(
        ReporterProcess::command({"--codefresh-token-file", (folder / "platform-token").string()}),
        std::move(environment), kTimeLimit);
  }
  [[nodiscard]] std::string logs() const { return daemon ? daemon->report() : std::string(); }
  Task<> stop() {
    if (daemon && daemon->process().running()) EXPECT_EQ(co_await daemon->stop(), 0);
    co_await platform.stop();
  }

  void apply(const std::string& object) const {
    cluster.kubectl_ok({"-n", "shop", "apply", "--server-side", "-f", "-"}, object);
  }
  Task<const FakePlatform::Report*> phase(std::string kind, std::string name, std::string phase,
                                          std::size_t first = 0) {
    co_return co_await platform.wait_for(
        [&](const FakePlatform::Report& report) {
          return report.kind() == kind && report.name() == name &&
                 report.object.value("/status/phase"_json_pointer, "") == phase;
        },
        soon(kTimeLimit), first);
  }
  Task<bool> gone(std::string kind, std::string name, std::size_t first) {
    co_return co_await platform.wait_for(
        [&](const FakePlatform::Report& report) {
          return report.kind() == kind && report.name() == name &&
                 report.data.value("deleted", false);
        },
        soon(kTimeLimit), first) != nullptr;
  }
  Task<bool> is_quiet() {
    co_return co_await platform.wait_until_quiet(std::chrono::seconds(2), soon(kTimeLimit));
  }
  // What was told last of the object is what the API server has.
  void expect_up_to_date(const std::string& resource, const std::string& name) const {
    auto live =
        json::parse(cluster.kubectl_ok({"-n", "shop", "get", resource, name, "-o", "json"}));
    auto told = platform.find(live["kind"].get<std::string>(), name).back()->object;
    for (auto* object : {&live, &told}) (*object)["metadata"].erase("resourceVersion");
    EXPECT_EQ(told, live);
  }

  TempDir folder;
  PeerCluster cluster;
  FakePlatform platform;
  std::optional<ReporterProcess> daemon;

 private:
  std::filesystem::path kubeconfig_;
};

void play(const std::function<Task<>(Bed&)>& body) {
  run_coro(
      [&]() -> Task<> {
        Bed world(co_await asio::this_coro::executor);
        CO_ASSERT_OK(world.platform.start());
        co_await play_in(world, body);
        EXPECT_THAT(world.platform.refused(), IsEmpty());
      },
      kLimit);
}

struct ResourceReporterPeers : testing::Test {
  void SetUp() override {
    GITOPS_REQUIRE_PEER(PeerCluster);
    GITOPS_REQUIRE_PEER(PeerRollouts);
    GITOPS_REQUIRE_PEER(PeerWorkflows);
  }
};

TEST_F(ResourceReporterPeers, ACanaryIsReportedFromItsDefinitionsArrivalToItsEnd) {
  play([](Bed& world) -> Task<> {
    world.start_daemon();
    CO_ASSERT_TRUE(co_await world.daemon->wait_for_readyz("ready\n"));
    EXPECT_THAT(world.daemon->get("/statusz").body, HasSubstr("rollouts: not served"));
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
  play([](Bed& world) -> Task<> {
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
  play([](Bed& world) -> Task<> {
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
    EXPECT_THAT(world.daemon->log() + world.daemon->get("/statusz").body, Not(HasSubstr(token)));
  });
}

}  // namespace
}  // namespace gitops::test
