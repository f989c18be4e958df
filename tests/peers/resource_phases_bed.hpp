#pragma once

#include <algorithm>
#include <functional>
#include <optional>
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

// The event-reporter in mode `resource` beside a watch that records every phase of an object.
namespace gitops::test {

using namespace nlohmann::literals;

inline constexpr auto kLimit = std::chrono::seconds(120);
inline constexpr auto kTimeLimit = std::chrono::seconds(60);
inline constexpr auto kQuiet = std::chrono::milliseconds(500);
inline constexpr const char* kRuntime = "runtime";  // the reporter's own namespace
inline constexpr const char* kToken = "peers-platform-token";

// What the reporter may read.
inline constexpr const char* kRoles = R"(
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
inline std::filesystem::path prepare(PeerCluster& cluster) {
  if (cluster.request("GET", std::string("/api/v1/namespaces/") + kRuntime).status == 404) {
    cluster.create_namespace(kRuntime);
    cluster.apply(kRoles);
  }
  return cluster.write_kubeconfig("phase-reporter",
                                  cluster.service_account_token(kRuntime, "phase-reporter"));
}

// Values without those that repeat the one before.
inline std::vector<std::string> changes_of(std::vector<std::string> values) {
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
        version_(nlohmann::json::parse(cluster.request("GET", path_).body)
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
      found.push_back(nlohmann::json::parse(event).value("/object/status/phase"_json_pointer, ""));
    }
    return changes_of(std::move(found));
  }

 private:
  const PeerCluster& cluster_;
  std::string path_;
  std::string name_;
  std::string version_;
};

class ResourcePhasesBed {
 public:
  ResourcePhasesBed(PeerCluster& the_cluster, const Executor& executor)
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
        [&](const FakePlatform::Report& seen) {
          return seen.kind() == kind && seen.name() == name &&
                 seen.object.value("/status/phase"_json_pointer, "") == phase;
        },
        soon(kTimeLimit));
    co_return report != nullptr;
  }
  // The report that says that an object is gone.
  Task<const FakePlatform::Report*> reported_gone(std::string kind, std::string name) {
    co_return co_await platform.wait_for(
        [&](const FakePlatform::Report& seen) {
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

inline void play(PeerCluster& cluster, const std::function<Task<>(ResourcePhasesBed&)>& body) {
  run_coro(
      [&]() -> Task<> {
        ResourcePhasesBed bed(cluster, co_await asio::this_coro::executor);
        co_await play_in(bed, body);
        EXPECT_THAT(bed.platform.refused(), testing::IsEmpty());
      },
      kLimit);
}

// An object without what changes without an event.
inline nlohmann::json essence_of(nlohmann::json object) {
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
  Task<> apply_canary(ResourcePhasesBed& bed, std::string image) const {
    co_await bed.kubectl({"--namespace", ns, "apply", "--server-side", "--filename", "-"},
                         PeerRollouts::canary(shop, image));
  }
  Task<bool> rollout_is(ResourcePhasesBed& bed, std::string phase) const {
    co_return co_await bed.aside(
        [this, phase] { return shared_rollouts().wait_for_phase(ns, shop, phase); });
  }

  // Objects of other tests are still there.
  std::string ns;
  std::string shop;  // a Rollout
};

}  // namespace gitops::test
