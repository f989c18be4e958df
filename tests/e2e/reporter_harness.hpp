#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemons/reporter_process.hpp"
#include "doubles/fake_argocd.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"

// The real event-reporter between doubles of Kubernetes, Argo CD and the control plane.
namespace gitops::test {

inline constexpr auto kLimit = std::chrono::seconds(60);
inline constexpr const char* kPlatformToken = "canary-platform-token";
inline constexpr const char* kArgoCdToken = "canary.argocd.token";
inline constexpr const char* kKubernetesToken = "canary-kubernetes-token";

struct Tls {
  bool kubernetes = false;
  bool argocd = false;
  bool platform = false;
};

struct AppDetails {
  nlohmann::json metadata = nlohmann::json::object();  // merged into the Application's metadata
  std::string sync_status = "Synced";
  std::string revision = "r1";
};

// The doubles and a daemon that is configured to use them.
class ReporterHarness {
 public:
  explicit ReporterHarness(const Executor& executor, Tls tls = {})
      : tls_(tls),
        kube(executor, {.server = options(tls.kubernetes), .token = kKubernetesToken}),
        argocd(executor, kube, {.server = options(tls.argocd), .token = kArgoCdToken}),
        platform(executor, {.server = options(tls.platform), .token = kPlatformToken}) {
    write_file(folder / "ca.crt", read_file(authority.ca_file()));
    write_file(folder / "platform-token", std::string(kPlatformToken) + "\n");
  }

  Task<> start_doubles() {
    CO_ASSERT_OK(kube.start());
    CO_ASSERT_OK(argocd.start());
    CO_ASSERT_OK(platform.start());
    kube.put_secret({"argocd", "argocd-token"}, {{"token", kArgoCdToken}});
    write_kubeconfig();
  }
  void start_daemon(Environment more = {}, std::vector<std::string> flags = {}) {
    Environment environment{{"POD_NAMESPACE", "argocd"},
                            {"KUBECONFIG", (folder / "kubeconfig").string()},
                            {"ARGOCD_SERVER", argocd.url().to_string()},
                            {"ARGO_CD_TOKEN_SECRET_NAME", "argocd-token"},
                            {"CODEFRESH_URL", platform.url().to_string()},
                            {"ARGOCD_CA_FILE", (folder / "ca.crt").string()},
                            {"CODEFRESH_SSL_CERT_PATH", (folder / "ca.crt").string()},
                            {"RUNTIME_VERSION", "1.2.3"},
                            {"LOG_LEVEL", "debug"}};
    for (auto& [name, value] : more) environment[name] = value;
    flags.emplace_back("--codefresh-token-file");
    flags.push_back((folder / "platform-token").string());
    daemon.emplace(ReporterProcess::command(std::move(flags)), std::move(environment));
  }
  Task<> start() {
    co_await start_doubles();
    start_daemon();
    CO_ASSERT_TRUE(co_await daemon->wait_for_readyz("ready\n"));
  }
  [[nodiscard]] std::string logs() const { return daemon ? daemon->report() : std::string(); }
  Task<> stop() {
    if (daemon && daemon->process().running()) EXPECT_EQ(co_await daemon->stop(), 0);
    co_await platform.stop();
    co_await argocd.stop();
    co_await kube.stop();
  }

  // Writes an application with one ConfigMap of this content.
  void put_app(const std::string& name, int content, const AppDetails& details = {}) {
    const nlohmann::json config_map = {{"apiVersion", "v1"},
                                       {"kind", "ConfigMap"},
                                       {"metadata", {{"name", name + "-c"}, {"namespace", "shop"}}},
                                       {"data", {{"content", std::to_string(content)}}}};
    const nlohmann::json id = {{"kind", "ConfigMap"}, {"namespace", "shop"}, {"name", name + "-c"}};
    nlohmann::json item = id;
    item["targetState"] = config_map.dump();
    item["liveState"] = config_map.dump();
    nlohmann::json entry = id;
    entry["version"] = "v1";
    entry["status"] = "Synced";
    argocd.set_tree(name, {{"nodes", nlohmann::json::array()}});
    argocd.set_managed_resources(name, nlohmann::json::array({item}));
    argocd.set_revision(details.revision,
                        {{"author", "a"}, {"date", "2026-03-04T09:12:02Z"}, {"message", "m"}});
    nlohmann::json app = {
        {"apiVersion", "argoproj.io/v1alpha1"},
        {"kind", "Application"},
        {"metadata", {{"name", name}, {"namespace", "argocd"}, {"uid", "uid-" + name}}},
        {"spec",
         {{"project", "default"},
          {"source", {{"repoURL", "https://git.example.com/x.git"}}},
          {"destination", {{"server", "https://kubernetes.default.svc"}}}}},
        {"status",
         {{"sync", {{"status", details.sync_status}, {"revision", details.revision}}},
          {"health", {{"status", "Healthy"}}},
          {"content", content},
          {"resources", nlohmann::json::array({entry})}}}};
    app["metadata"].merge_patch(details.metadata);
    kube.put(k8s::resources::kApplications, std::move(app));
  }

  // Events from index `first` as "Kind name" or "Kind name gone".
  [[nodiscard]] std::vector<std::string> events(std::size_t first = 0) const {
    std::vector<std::string> out;
    for (const auto* report : platform.find("", "", first)) {
      out.push_back(report->kind() + " " + report->name() +
                    (report->source("actualManifest").empty() ? " gone" : ""));
    }
    return out;
  }
  Task<bool> wait_for_content(const std::string& name, int content) {
    const auto* report = co_await platform.wait_for(
        [&](const FakePlatform::Report& candidate) {
          return candidate.name() == name + "-c" &&
                 candidate.object.value("/data/content"_json_pointer, "") ==
                     std::to_string(content);
        },
        soon());
    co_return report != nullptr;
  }

  TempDir folder;
  CertificateAuthority authority;
  CertificateAuthority stranger{"Somebody Else"};

 private:
  http::ServerOptions options(bool tls) {
    http::ServerOptions out;
    if (!tls) return out;
    if (certificate_.cert_file.empty()) {
      certificate_ = authority.issue({.common_name = "localhost",
                                      .organization = "",
                                      .alt_names = {"localhost", "127.0.0.1"}});
    }
    out.tls.emplace();
    out.tls->certificate_file = certificate_.cert_file.string();
    out.tls->key_file = certificate_.key_file.string();
    return out;
  }
  void write_kubeconfig() {
    auto text = kube.kubeconfig();
    if (tls_.kubernetes) {
      const auto at = text.find("    server:");
      text.insert(at, "    certificate-authority: " + (folder / "ca.crt").string() + "\n");
    }
    write_file(folder / "kubeconfig", text);
  }

  Tls tls_;
  Certificate certificate_;

 public:
  FakeKubeApi kube;
  FakeArgoCd argocd;
  FakePlatform platform;
  std::optional<ReporterProcess> daemon;
};

inline void play(Tls tls, const std::function<Task<>(ReporterHarness&)>& body,
                 std::chrono::seconds limit = kLimit) {
  run_coro(
      [&]() -> Task<> {
        ReporterHarness harness(co_await asio::this_coro::executor, tls);
        co_await play_in(harness, body);
      },
      limit);
}
inline void play(const std::function<Task<>(ReporterHarness&)>& body,
                 std::chrono::seconds limit = kLimit) {
  play({}, body, limit);
}

}  // namespace gitops::test
