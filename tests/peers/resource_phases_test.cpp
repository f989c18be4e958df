#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemons/reporter_process.hpp"
#include "doubles/fake_platform.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "peers/shared_cluster.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/run_on.hpp"
#include "support/wait.hpp"

// What the event-reporter in mode `resource` tells of an object's phases, compared with what the
// API server had: the same ones in the same order. With the real controllers of Rollouts and
// Workflows.
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

constexpr auto kLimit = std::chrono::seconds(120);
constexpr auto kTimeLimit = std::chrono::seconds(60);
constexpr auto kQuiet = std::chrono::milliseconds(500);
constexpr const char* kRuntime = "runtime";  // the reporter's own namespace
constexpr const char* kToken = "peers-platform-token";

// What the reporter may read.
constexpr const char* kRoles = R"(
apiVersion: v1
kind: ServiceAccount
metadata: {name: phase-reporter, namespace: runtime}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: phase-reporter}
rules:
- {apiGroups: [argoproj.io], resources: [rollouts, analysisruns, workflows], verbs: [get, list, watch]}
- {apiGroups: [apps], resources: [replicasets], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: phase-reporter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: phase-reporter}
subjects: [{kind: ServiceAccount, name: phase-reporter, namespace: runtime}]
)";

// The runtime's namespace and the reporter's kubeconfig, once per cluster.
std::filesystem::path prepare(PeerCluster& cluster) {
  if (cluster.request("GET", std::string("/api/v1/namespaces/") + kRuntime).status == 404) {
    cluster.create_namespace(kRuntime);
    cluster.apply(kRoles);
  }
  return cluster.write_kubeconfig("phase-reporter",
                                  cluster.service_account_token(kRuntime, "phase-reporter"));
}

// Values without those that repeat the one before.
std::vector<std::string> changes_of(std::vector<std::string> values) {
  const auto rest = std::ranges::unique(values);
  values.erase(rest.begin(), rest.end());
  return values;
}

// What the API server remembers of one object's phases, from the construction of this on.
class PhaseHistory {
 public:
  PhaseHistory(const PeerCluster& cluster, const std::string& ns, const std::string& resource,
               std::string name)
      : cluster_(cluster),
        path_("/apis/argoproj.io/v1alpha1/namespaces/" + ns + "/" + resource),
        name_(std::move(name)),
        version_(json::parse(cluster.request("GET", path_).body)
                     .at("/metadata/resourceVersion"_json_pointer)) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  // Blocks for a second: that is how long the server waits for more.
  [[nodiscard]] std::vector<std::string> phases() const {
    const auto reply = cluster_.request(
        "GET", path_ + "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3D" + name_ +
                   "&resourceVersion=" + version_);
    if (!reply.ok()) throw std::runtime_error("no history of " + name_ + ": " + reply.body);
    std::vector<std::string> found;
    std::istringstream events(reply.body);
    for (std::string event; std::getline(events, event);) {
      found.push_back(json::parse(event).value("/object/status/phase"_json_pointer, ""));
    }
    return changes_of(std::move(found));
  }

 private:
  const PeerCluster& cluster_;
  std::string path_;
  std::string name_;
  std::string version_;
};

class Bed {
 public:
  Bed(PeerCluster& the_cluster, const Executor& executor)
      : cluster(the_cluster), platform(executor, {.token = kToken}) {}

  Task<> start() {
    CO_ASSERT_OK(platform.start());
    const auto kubeconfig = prepare(cluster);
    write_file(folder_ / "platform-token", kToken);
    reporter.emplace(
        ReporterProcess::command({"--codefresh-token-file", (folder_ / "platform-token").string()}),
        Environment{{"REPORTER_MODE", "resource"},
                    {"POD_NAMESPACE", kRuntime},
                    {"KUBECONFIG", kubeconfig.string()},
                    {"CODEFRESH_URL", platform.url().to_string()},
                    {"LEDGER_FILE", (folder_ / "ledger.db").string()},
                    {"LOG_LEVEL", "debug"}},
        kTimeLimit);
    if (!co_await reporter->wait_for_readyz("ready\n")) {
      throw std::runtime_error("the reporter is not ready: " + reporter->last_readyz());
    }
  }
  [[nodiscard]] std::string logs() const { return reporter ? reporter->report() : std::string(); }
  Task<> stop() {
    if (reporter && reporter->process().running()) EXPECT_EQ(co_await reporter->stop(), 0);
    co_await platform.stop();
  }

  // Blocking work, while the control plane goes on answering.
  template <class Function>
  Task<std::invoke_result_t<Function>> aside(Function function) {
    return run_on(pool_, std::move(function));
  }
  Task<> kubectl(std::vector<std::string> arguments, std::string input = {}) {
    co_await aside([this, arguments, input] { cluster.kubectl_ok(arguments, input); });
  }

  // The phases that were reported of an object, change by change; a report without one counts as
  // an empty phase.
  [[nodiscard]] std::vector<std::string> phases(const std::string& kind,
                                                const std::string& name) const {
    std::vector<std::string> found;
    for (const auto* report : platform.find(kind, name)) {
      found.push_back(report->object.value("/status/phase"_json_pointer, ""));
    }
    return changes_of(std::move(found));
  }
  Task<bool> reported(std::string kind, std::string name, std::string phase) {
    const auto* report = co_await platform.wait_for(
        [&](const Report& seen) {
          return seen.kind() == kind && seen.name() == name &&
                 seen.object.value("/status/phase"_json_pointer, "") == phase;
        },
        soon(kTimeLimit));
    co_return report != nullptr;
  }
  // The report that says that an object is gone.
  Task<const Report*> reported_gone(std::string kind, std::string name) {
    co_return co_await platform.wait_for(
        [&](const Report& seen) {
          return seen.kind() == kind && seen.name() == name && seen.data.value("deleted", false);
        },
        soon(kTimeLimit));
  }
  Task<bool> quiet() { co_return co_await platform.wait_until_quiet(kQuiet, soon(kTimeLimit)); }

  PeerCluster& cluster;

 private:
  TempDir folder_;
  asio::thread_pool pool_{1};

 public:
  FakePlatform platform;
  std::optional<ReporterProcess> reporter;
};

void play(PeerCluster& cluster, const std::function<Task<>(Bed&)>& body) {
  run_coro(
      [&]() -> Task<> {
        Bed world(cluster, co_await asio::this_coro::executor);
        co_await play_in(world, body);
        EXPECT_THAT(world.platform.refused(), IsEmpty());
      },
      kLimit);
}

// An object without what changes without an event.
json essence_of(json object) {
  for (const auto* field : {"resourceVersion", "generation", "managedFields"}) {
    object["metadata"].erase(field);
  }
  object["status"].erase("observedGeneration");
  for (auto& condition : object["status"]["conditions"]) {
    for (const auto* time : {"lastTransitionTime", "lastUpdateTime"}) condition.erase(time);
  }
  return object;
}

struct ResourcePhases : testing::Test {
  void SetUp() override {
    GITOPS_REQUIRE_PEER(PeerCluster);
    GITOPS_REQUIRE_PEER(PeerRollouts);
    GITOPS_REQUIRE_PEER(PeerWorkflows);
    const auto id = random_hex(6);
    ns = "resources-" + id;
    shop = "shop-" + id;
  }
  Task<> apply_canary(Bed& world, std::string image) const {
    co_await world.kubectl({"--namespace", ns, "apply", "--server-side", "--filename", "-"},
                           PeerRollouts::canary(shop, image));
  }
  Task<bool> rollout_is(Bed& world, std::string phase) const {
    co_return co_await world.aside(
        [this, phase] { return shared_rollouts().wait_for_phase(ns, shop, phase); });
  }

  // Objects of other tests are still there.
  std::string ns;
  std::string shop;  // a Rollout
};

TEST_F(ResourcePhases, OfACanaryAreReportedInOrder) {
  shared_rollouts();
  shared_cluster().create_namespace(ns);
  const PhaseHistory history(shared_cluster(), ns, "rollouts", shop);
  play(shared_cluster(), [&](Bed& world) -> Task<> {
    co_await world.start();
    co_await apply_canary(world, "example.test/shop:1");
    CO_ASSERT_TRUE(co_await rollout_is(world, "Healthy"));
    co_await apply_canary(world, "example.test/shop:2");
    CO_ASSERT_TRUE(co_await rollout_is(world, "Paused"));
    co_await world.aside([this] { shared_rollouts().promote(ns, shop); });
    CO_ASSERT_TRUE(co_await rollout_is(world, "Healthy"));
    co_await apply_canary(world, "example.test/shop:3");
    CO_ASSERT_TRUE(co_await rollout_is(world, "Paused"));
    co_await world.aside([this] { shared_rollouts().abort(ns, shop); });
    CO_ASSERT_TRUE(co_await rollout_is(world, "Degraded"));
    CO_ASSERT_TRUE(co_await world.reported("Rollout", shop, "Degraded"));
    CO_ASSERT_TRUE(co_await world.quiet());
    const auto reply = co_await world.aside([&] {
      return world.cluster.request(
          "GET", "/apis/argoproj.io/v1alpha1/namespaces/" + ns + "/rollouts/" + shop);
    });
    const auto* last = world.platform.find("Rollout", shop).back();
    EXPECT_EQ(last->data.size(), 1U) << last->data.dump();
    EXPECT_THAT(last->data.at("object").get<std::string>(), StartsWith("{"));
    EXPECT_FALSE(last->object.at("metadata").contains("managedFields"));
    EXPECT_EQ(essence_of(last->object), essence_of(json::parse(reply.body)));

    co_await world.kubectl({"--namespace", ns, "delete", "rollout", shop});
    const auto* gone = co_await world.reported_gone("Rollout", shop);
    CO_ASSERT_TRUE(gone != nullptr);
    EXPECT_TRUE(gone->object.contains("/metadata/deletionTimestamp"_json_pointer));
    CO_ASSERT_TRUE(co_await world.quiet());
    EXPECT_EQ(world.platform.find("Rollout", shop).back(), gone);

    // The order is that in which the API server had it, and no phase is missing.
    const auto phases = co_await world.aside([&] { return history.phases(); });
    EXPECT_EQ(world.phases("Rollout", shop), phases);
    EXPECT_THAT(phases, IsSupersetOf({"Healthy", "Paused", "Degraded"}));
    std::set<std::string> ids;
    for (const auto& report : world.platform.reports()) {
      EXPECT_TRUE(ids.insert(report.event_id).second) << report.event_id;
    }
  });
}

TEST_F(ResourcePhases, OfAnAnalysisRunAreReportedInOrder) {
  shared_rollouts();
  shared_cluster().create_namespace(ns);
  const PhaseHistory history(shared_cluster(), ns, "analysisruns", "check");
  play(shared_cluster(), [&](Bed& world) -> Task<> {
    co_await world.start();
    co_await world.kubectl({"--namespace", ns, "create", "--filename", "-"},
                           PeerRollouts::job_analysis("check"));
    CO_ASSERT_TRUE(co_await world.reported("AnalysisRun", "check", "Successful"));
    CO_ASSERT_TRUE(co_await world.quiet());
    const auto phases = co_await world.aside([&] { return history.phases(); });
    EXPECT_EQ(world.phases("AnalysisRun", "check"), phases);
    EXPECT_THAT(phases, IsSupersetOf({"Running", "Successful"}));
  });
}

TEST_F(ResourcePhases, OfWorkflowsAreReportedInOrder) {
  prepare(shared_cluster());
  shared_workflows();
  shared_cluster().create_namespace(ns);
  const PhaseHistory good(shared_cluster(), kRuntime, "workflows", "good");
  const PhaseHistory bad(shared_cluster(), kRuntime, "workflows", "bad");
  play(shared_cluster(), [&](Bed& world) -> Task<> {
    co_await world.start();
    const auto submit = [&](std::string where, std::string name, std::string spec) -> Task<> {
      co_await world.aside([=] { shared_workflows().submit(where, name, spec); });
    };
    co_await submit(ns, "elsewhere", PeerWorkflows::one_wait());
    co_await submit(kRuntime, "good", PeerWorkflows::one_step());
    co_await submit(kRuntime, "bad", PeerWorkflows::one_wait());
    CO_ASSERT_TRUE(co_await world.reported("Workflow", "good", "Succeeded"));
    CO_ASSERT_TRUE(co_await world.reported("Workflow", "bad", "Running"));
    const auto reply = co_await world.aside([] {
      return shared_workflows().request(
          PeerWorkflows::Auth::server, "PUT",
          std::string("/api/v1/workflows/") + kRuntime + "/bad/terminate", "{}");
    });
    CO_ASSERT_EQ(reply.status, 200);
    CO_ASSERT_TRUE(co_await world.reported("Workflow", "bad", "Failed"));
    CO_ASSERT_TRUE(co_await world.quiet());
    for (const auto* history : {&good, &bad}) {
      const auto phases = co_await world.aside([&] { return history->phases(); });
      EXPECT_EQ(world.phases("Workflow", history->name()), phases);
    }
    EXPECT_THAT(world.phases("Workflow", "good"), Contains("Running"));

    for (const auto* name : {"good", "bad"}) {
      co_await world.kubectl({"--namespace", kRuntime, "delete", "workflow", name});
      EXPECT_TRUE(co_await world.reported_gone("Workflow", name) != nullptr) << name;
    }
    EXPECT_THAT(world.platform.find("Workflow", "elsewhere"), IsEmpty());
  });
}

}  // namespace
}  // namespace gitops::test
