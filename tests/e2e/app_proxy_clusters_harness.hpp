#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "daemons/router_harness.hpp"
#include "doubles/fake_argocd_server.hpp"
#include "doubles/fake_kube_api.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "e2e/control_plane_side.hpp"
#include "support/git_server.hpp"

// app-proxy with the clusters of Argo CD.
namespace gitops::test {

inline constexpr auto kAnn = AppProxyHarness::kAnn;

inline std::vector<nlohmann::json> secrets_in(const FakeKubeApi& cluster) {
  std::vector<nlohmann::json> found;
  const auto* type = cluster.store().find_type("", "v1", "secrets");
  for (const auto& object : cluster.store().list(*type, "default")) found.push_back(object->json);
  return found;
}

struct ClustersHarness {
  explicit ClustersHarness(const Executor& executor, ControlPlaneKind kind)
      : base(executor), side(kind, base.platform), cluster(executor), argocd(executor) {
    git.create_repository("config");
    git.add_user("robot", "canary-git");
    side.set_git("", "", git.url("config"));
    EXPECT_TRUE(cluster.start());
    EXPECT_TRUE(argocd.start());
    argocd.has_accounts = false;
    argocd.more = [this] { return clusters_of_secrets(); };
    write_file(folder / "kubeconfig", cluster.kubeconfig());
  }
  [[nodiscard]] Environment settings(const std::string& leader_id = "pod-a") const {
    Environment all{{"KUBECONFIG", (folder / "kubeconfig").string()},
                    {"NAMESPACE", "default"},
                    {"USER_TOKEN", kAnn},
                    {"RUNTIME_STORE_IV", "canary-iv"},
                    {"LEADER_ID", leader_id},
                    {"REPOS_DIR", (folder / ("clones-" + leader_id)).string()},
                    {"GIT_INSECURE_HTTP", "true"},
                    {"GIT_USERNAME", "robot"},
                    {"GIT_PASSWORD", "canary-git"},
                    {"ARGO_CD_URL", "http://127.0.0.1:" + std::to_string(argocd.url().port)},
                    {"ARGO_CD_TOKEN", "canary-argocd"}};
    all.merge(side.environment());
    return all;
  }
  Task<> start(Environment more = {}) {
    more.merge(settings());
    base.start(std::move(more));
    co_await base.account_known();
  }

  // The request of the Job.
  Task<AppProxyHarness::Answer> add(const char* key, const std::string& server,
                                    nlohmann::json user) {
    const nlohmann::json config{
        {"kind", "Config"},
        {"apiVersion", "v1"},
        {"clusters", {{{"name", "edge"}, {"cluster", {{"server", server}}}}}},
        {"users", {{{"name", "edge"}, {"user", std::move(user)}}}},
        {"contexts", {{{"name", "edge"}, {"context", {{"cluster", "edge"}, {"user", "edge"}}}}}},
        {"current-context", "edge"}};
    return post(key, nlohmann::json{{"name", "edge"},
                                    {"kubeConfig", base64_encode(config.dump())},
                                    {"annotations", ""},
                                    {"labels", base64_encode("env: prod\n")}}
                         .dump());
  }
  Task<AppProxyHarness::Answer> add(const char* key = kAnn) {
    return add(key, kEdge, {{"token", "canary-cluster-token"}});
  }
  Task<AppProxyHarness::Answer> post(const char* key, std::string body) {
    http::Headers headers{{"Content-Type", "application/json"}};
    if (*key != '\0') headers.add("Authorization", key);
    co_return co_await base.send({.method = "POST",
                                  .target = "/app-proxy/api/clusters",
                                  .headers = std::move(headers),
                                  .body = std::move(body)});
  }
  // The public SDK's document.
  Task<AppProxyHarness::Answer> remove(const char* key, const std::string& server,
                                       const char* runtime = "prod") {
    return base.ask(
        "mutation RemoveCluster($server: String!, $runtime: String!) {\n\tremoveCluster(server: "
        "$server, runtime: $runtime)\n}\n",
        AppProxyHarness::as(key), {{"server", server}, {"runtime", runtime}});
  }

  // Secrets of clusters.
  [[nodiscard]] std::vector<nlohmann::json> secrets() const {
    std::vector<nlohmann::json> found;
    for (const nlohmann::json& secret : secrets_in(cluster)) {
      if (secret["metadata"]["name"].get<std::string>().starts_with("cluster-")) {
        found.push_back(secret);
      }
    }
    return found;
  }
  // The clusters that Argo CD reads from its Secrets.
  [[nodiscard]] std::vector<FakeArgoCdServer::Cluster> clusters_of_secrets() const {
    std::vector<FakeArgoCdServer::Cluster> found;
    for (const nlohmann::json& secret : secrets_in(cluster)) {
      if (secret["metadata"]["labels"].value("argocd.argoproj.io/secret-type", "") != "cluster") {
        continue;
      }
      const auto value = [&](const char* key) {
        return base64_decode(secret["data"][key].get<std::string>()).value();
      };
      found.push_back({value("name"), value("server")});
    }
    return found;
  }
  [[nodiscard]] std::string file(const std::string& path) const {
    return git.file_at_head("config", path).value_or("");
  }
  [[nodiscard]] std::string log_of(const std::string& path) const {
    return git.git("config", {"log", "--format=%an|%s|%b", "main", "--", path}).out;
  }
  // "edge Successful", in order of arrival; a list in brackets for each report.
  [[nodiscard]] std::vector<std::string> reported() const {
    std::vector<std::string> lines;
    for (const nlohmann::json& list : base.platform.accounts().life().clusters) {
      std::string line;
      for (const nlohmann::json& one : list) {
        line += (line.empty() ? "" : ", ") + one["name"].get<std::string>() + " " +
                one["info"]["connectionState"]["status"].get<std::string>();
      }
      lines.push_back(line);
    }
    return lines;
  }

  [[nodiscard]] std::string logs() const { return base.logs() + side.logs(); }
  Task<> stop() {
    co_await base.stop();
    side.stop();
    co_await argocd.stop();
    co_await cluster.stop();
  }

  static constexpr const char* kEdge = "https://edge.example.test:6443";
  mutable AppProxyHarness base;
  ControlPlaneSide side;
  FakeKubeApi cluster;
  FakeArgoCdServer argocd;
  GitServer git;
  TempDir folder;
};

inline void in_clusters_harness(ControlPlaneKind kind,
                                const std::function<Task<>(ClustersHarness&)>& body) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  run_coro(
      [&]() -> Task<> {
        ClustersHarness harness(co_await asio::this_coro::executor, kind);
        co_await play_in(harness, body);
      },
      std::chrono::seconds(150));
}
inline void in_clusters_harness(const std::function<Task<>(ClustersHarness&)>& body) {
  in_clusters_harness(ControlPlaneKind::fake, body);
}

}  // namespace gitops::test
