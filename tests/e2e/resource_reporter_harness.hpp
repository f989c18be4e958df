#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemons/reporter_process.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/tcp_relay.hpp"
#include "support/wait.hpp"

// The event-reporter in mode `resource` and its doubles.
namespace gitops::test {

inline constexpr auto kLimit = std::chrono::seconds(90);
inline constexpr const char* kManagedToken = "canary-managed-token";

inline nlohmann::json object(const k8s::Resource& resource, const std::string& name,
                             nlohmann::json more = nlohmann::json::object()) {
  nlohmann::json out = {{"apiVersion", resource.api_version()},
                        {"kind", resource.kind},
                        {"metadata", {{"name", name}, {"namespace", "shop"}}},
                        {"status", {{"phase", "Running"}}}};
  out.merge_patch(more);
  return out;
}

inline nlohmann::json replica_set(const std::string& name, const std::string& owner) {
  const auto version = owner == "Rollout" ? "argoproj.io/v1alpha1" : "apps/v1";
  return object(
      k8s::resources::kReplicaSets, name,
      {{"metadata",
        {{"ownerReferences",
          nlohmann::json::array({{{"apiVersion", version}, {"kind", owner}, {"name", "web"}}})}}}});
}

// The doubles and a daemon that is configured to use them. `managed` is a second cluster behind a
// relay that can be cut.
class ResourceReporterHarness {
 public:
  explicit ResourceReporterHarness(const Executor& executor)
      : kube(executor),
        managed(executor, {.token = kManagedToken}),
        platform(executor, {.token = "canary-platform-token"}),
        executor_(executor) {
    write_file(folder / "platform-token", "canary-platform-token\n");
  }

  Task<> start_doubles() {
    CO_ASSERT_OK(kube.start());
    CO_ASSERT_OK(managed.start());
    CO_ASSERT_OK(platform.start());
    relay.emplace(executor_, "127.0.0.1", managed.url().port);
    for (auto* cluster : {&kube, &managed}) {
      for (const auto* type : {&k8s::resources::kRollouts, &k8s::resources::kAnalysisRuns,
                               &k8s::resources::kWorkflows}) {
        cluster->add_type(*type);
      }
    }
    kube.put(k8s::resources::kNamespaces, {{"metadata", {{"name", "argocd"}}}});
    write_file(folder / "kubeconfig", kube.kubeconfig());
  }
  void start_daemon(const Environment& more = {}) {
    Environment environment{{"REPORTER_MODE", "resource"},
                            {"POD_NAMESPACE", "argocd"},
                            {"WORKFLOW_NAMESPACES", "sh*"},
                            {"KUBECONFIG", (folder / "kubeconfig").string()},
                            {"LEDGER_FILE", (folder / "ledger.db").string()},
                            {"CODEFRESH_URL", platform.url().to_string()},
                            {"LOG_LEVEL", "debug"}};
    for (const auto& [name, value] : more) environment[name] = value;
    daemon.emplace(
        ReporterProcess::command({"--codefresh-token-file", (folder / "platform-token").string()}),
        std::move(environment));
  }
  Task<> start(const Environment& more = {}) {
    co_await start_doubles();
    start_daemon(more);
    CO_ASSERT_TRUE(co_await daemon->wait_for_readyz("ready\n"));
  }
  [[nodiscard]] std::string logs() const { return daemon ? daemon->report() : std::string(); }
  Task<> stop() {
    if (daemon && daemon->process().running()) EXPECT_EQ(co_await daemon->stop(), 0);
    co_await platform.stop();
    if (relay) co_await relay->stop();
    co_await managed.stop();
    co_await kube.stop();
  }

  // Writes Argo CD's cluster Secret for `managed`.
  void put_cluster(const std::string& name, const nlohmann::json& config) {
    put_cluster(name, "http://127.0.0.1:" + std::to_string(relay->port()) + "/", config.dump());
  }
  void put_cluster(const std::string& name, const std::string& server, const std::string& config) {
    kube.put_secret({"argocd", "cluster-" + name},
                    {{"name", name}, {"server", server}, {"config", config}},
                    {{"argocd.argoproj.io/secret-type", "cluster"}});
  }

  // Events from index `first` as "Kind name" or "Kind name gone", with "@managed" if it applies.
  [[nodiscard]] std::vector<std::string> events(std::size_t first = 0) const {
    std::vector<std::string> out;
    for (const auto* report : platform.find("", "", first)) {
      out.push_back(report->kind() + " " + report->name() +
                    (report->data.value("deleted", false) ? " gone" : "") +
                    (report->data.contains("cluster") ? " @managed" : ""));
    }
    return out;
  }
  Task<bool> wait_for(std::string event, std::size_t first = 0) {
    co_return co_await platform.wait_for(
        [&](const FakePlatform::Report&) {
          const auto seen = events(first);
          return std::ranges::find(seen, event) != seen.end();
        },
        soon()) != nullptr;
  }
  Task<bool> is_quiet() {
    co_return co_await platform.wait_until_quiet(std::chrono::milliseconds(500), soon());
  }

  TempDir folder;
  FakeKubeApi kube;
  FakeKubeApi managed;
  FakePlatform platform;
  std::optional<TcpRelay> relay;
  std::optional<ReporterProcess> daemon;

 private:
  Executor executor_;
};

inline void play(const std::function<Task<>(ResourceReporterHarness&)>& body) {
  run_coro(
      [&]() -> Task<> {
        ResourceReporterHarness harness(co_await asio::this_coro::executor);
        co_await play_in(harness, body);
        EXPECT_THAT(harness.platform.refused(), testing::IsEmpty());
      },
      kLimit);
}

}  // namespace gitops::test
