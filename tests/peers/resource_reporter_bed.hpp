#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemons/reporter_process.hpp"
#include "doubles/fake_platform.hpp"
#include "peers/peer_cluster.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

// The event-reporter in mode `resource` on a real cluster.
namespace gitops::test {

using namespace nlohmann::literals;

inline constexpr auto kLimit = std::chrono::seconds(200);
inline constexpr auto kTimeLimit = std::chrono::seconds(60);
inline constexpr const char* kNamespace = "runtime";
inline constexpr const char* kToken = "peers-platform-token";

// Rights on all that is reported, and on Secrets where the runtime is.
inline constexpr const char* kRoles = R"(
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
inline std::string make_account(PeerCluster& cluster) {
  cluster.create_namespace(kNamespace);
  cluster.apply(kRoles);
  return cluster.service_account_token(kNamespace, "reporter");
}

class ResourceReporterBed {
 public:
  explicit ResourceReporterBed(const Executor& executor) : platform(executor, {.token = kToken}) {
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
    auto live = nlohmann::json::parse(
        cluster.kubectl_ok({"-n", "shop", "get", resource, name, "-o", "json"}));
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

inline void play(const std::function<Task<>(ResourceReporterBed&)>& body) {
  run_coro(
      [&]() -> Task<> {
        ResourceReporterBed bed(co_await asio::this_coro::executor);
        CO_ASSERT_OK(bed.platform.start());
        co_await play_in(bed, body);
        EXPECT_THAT(bed.platform.refused(), testing::IsEmpty());
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

}  // namespace gitops::test
