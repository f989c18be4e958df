#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "e2e/git_harness.hpp"
#include "peers/image_container.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "peers/permission_audit.hpp"
#include "peers/rendered_workload.hpp"
#include "support/play.hpp"
#include "support/run_on.hpp"
#include "support/wait.hpp"
#include "test_http/raw_http.hpp"

// A release in a real cluster: the image and its containers, the API server with an audit log, and
// what the release is for.
namespace gitops::test {

using namespace nlohmann::literals;

inline constexpr const char* kImage = "gitops-runtime";
inline constexpr const char* kNamespace = PeerArgoCd::kNamespace;
inline constexpr const char* kApps = "runtime-event-reporter";
inline constexpr const char* kResources = "cluster-event-reporter";
inline constexpr const char* kRouter = "internal-router";
inline constexpr const char* kProxy = "cap-app-proxy";
inline constexpr auto kAnn = AppProxyHarness::kAnn;
inline constexpr auto kTimeLimit = std::chrono::seconds(90);

struct Programs {
  static std::optional<std::string> missing() {
    if (auto lacking = Helm::missing()) return lacking;
    if (auto lacking = PeerRollouts::missing()) return lacking;
    return PeerBed::missing();
  }
};

// The cluster with an audit log of all that the ServiceAccounts of the namespace ask for.
class AuditedCluster {
 public:
  AuditedCluster() : cluster_({.api_server_flags = audit_.flags()}), argocd_(cluster_) {}

  PeerCluster& cluster() { return cluster_; }
  PeerArgoCd& argocd() { return argocd_; }
  GitServer& git() { return git_; }

  const PermissionAudit& audit() const { return audit_; }

 private:
  PermissionAudit audit_{{kNamespace}};
  GitServer git_;
  PeerCluster cluster_;
  PeerArgoCd argocd_;
};

// The image that the chart names.
inline std::filesystem::path make_image(const TempDir& folder) {
  run_or_throw({"python3", std::filesystem::path(GITOPS_SOURCE_DIR) / "image/build.py", "--bin",
                GITOPS_BIN_DIR, "--out", folder.path(), "--unhardened", "--level", "1", kImage},
               {}, {}, std::chrono::seconds(120));
  return folder.path();
}

class InstalledReleaseBed {
 public:
  InstalledReleaseBed(AuditedCluster& the_bed, std::filesystem::path image,
                      const Executor& executor)
      : bed(the_bed), base(executor), image_(std::move(image)) {
    base.base.platform.set_token(AppProxyHarness::kRuntime);
    base.base.platform.accounts().add(AppProxyHarness::kRuntime,
                                      FakeAccounts::Runtime{.name = "prod", .account_id = "acc-1"});
    base.base.platform.accounts().add(
        {.id = "acc-1", .name = "acme", .admins = {"u-ann"}, .git_provider = "GITHUB"});
  }

  FakePlatform& platform() { return base.base.platform; }

  // Blocking work, while the loop serves the control plane.
  template <class Function>
  Task<std::invoke_result_t<Function>> aside(Function function) {
    return run_on(pool_, std::move(function));
  }

  // What differs from a customer's values: the pods' network.
  void helm(int threadiness) {
    const auto& argocd = bed.argocd().url();
    const nlohmann::json values{
        {"global",
         {{"codefresh", {{"url", platform().url().to_string()}, {"accountId", "acc-1"}}},
          {"runtime", {{"name", "prod"}}},
          {"integrations",
           {{"argo-cd",
             {{"server",
               {{"svc", "127.0.0.1"},
                {"port", std::stoi(argocd.substr(argocd.rfind(':') + 1))}}}}}}},
          {"event-reporters",
           {{"config", {{"threadiness", threadiness}}},
            {"replicaCount", 2},
            {"terminationGracePeriodSeconds", 15},
            {"persistence", {{"enabled", false}}}}}}},
        {"event-reporters", {{kResources, {{"managedClusters", true}}}}},
        {"internal-router",
         {{"routing",
           {{"app-proxy", {{"internalUrl", "http://127.0.0.1:" + std::to_string(proxy_port_)}}}}},
          {"webhooks", {{"signatures", nlohmann::json::array()}}},
          {"config",
           {{"webhook-port", events.port()}, {"upstream-allowed-addresses", {"127.0.0.0/8"}}}},
          {"terminationGracePeriodSeconds", 5}}},
        {"app-proxy",
         {{"enabled", true},
          {"env",
           {{"GIT_INSECURE_HTTP", true}, {"LOG_LEVEL", threadiness > 20 ? "debug" : "info"}}},
          {"terminationGracePeriodSeconds", 5}}}};
    write_file(folder_ / "values.json", values.dump());
    command({"upgrade", "--install", "rt", chart_folder(), "-f", folder_ / "values.json"});
  }
  std::string command(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-n", kNamespace});
    const auto done = helm_.run(std::move(arguments), bed.cluster().kubeconfig());
    if (!done.ok()) throw std::runtime_error("helm: " + done.err);
    EXPECT_THAT(done.err, testing::Not(testing::HasSubstr("arning")));
    return done.out;
  }

  // Runs the newest pods of all workloads, in place of those that run.
  Task<> start_pods() {
    co_await stop_pods();
    for (const std::string name : {kApps, kResources, kProxy, kRouter}) {
      co_await aside([this, name] {
        const bool set = name.ends_with("reporter");
        auto workload = set ? std::make_unique<RenderedWorkload>(bed.cluster(), kNamespace, name, 0)
                            : std::make_unique<RenderedWorkload>(
                                  bed.cluster(), kNamespace, RenderedWorkload::Deployment{name});
        if (set) revision_[name] = workload->environment().at("THREADINESS");
        prepared_[name] = std::move(workload);
      });
      // Children die with the thread that started them.
      Environment more;
      if (name == kProxy) more["PORT"] = std::to_string(proxy_port_);
      pods_[name] =
          std::make_unique<ImageContainer>(image_, std::move(prepared_.at(name)), std::move(more));
    }
    for (const auto& [name, pod] : pods_) {
      co_await aside([&pod] { pod->await_ready(kTimeLimit); });
    }
  }
  Task<> stop_pods() {
    for (const auto& [name, pod] : pods_) {
      const auto code = co_await aside([&pod] { return pod->process().stop(kTimeLimit); });
      EXPECT_EQ(code, 0) << name;
      ended_ += "--- " + name + "\n" + pod->log();
    }
    pods_.clear();
  }

  // -- what the release is for --

  Task<> an_event_arrives(std::string label) {
    co_await aside([this, label] {
      bed.cluster().kubectl_ok({"-n", kNamespace, "label", "applications.argoproj.io", "shop",
                                "--overwrite", "turn=" + label});
      for (const auto* kind : {"rollouts.argoproj.io", "analysisruns.argoproj.io", "replicasets"}) {
        bed.cluster().kubectl_ok(
            {"-n", "shop", "label", kind, "web", "--overwrite", "turn=" + label});
      }
      bed.cluster().kubectl_ok({"-n", kNamespace, "label", "workflows.argoproj.io", "web",
                                "--overwrite", "turn=" + label});
    });
    for (const std::string kind :
         {"Application", "Rollout", "AnalysisRun", "Workflow", "ReplicaSet"}) {
      const auto* seen = co_await platform().wait_for(
          [&](const FakePlatform::Report& report) {
            return report.kind() == kind &&
                   report.object.value("/metadata/labels/turn"_json_pointer, "") == label;
          },
          deadline_after(kTimeLimit));
      EXPECT_NE(seen, nullptr) << kind << " " << label;
    }
  }
  Task<> a_webhook_arrives() {
    events.forget();
    const auto answer = co_await aside([this] {
      return http_call({.method = "POST",
                        .url = router_url() + "/webhooks/" + kNamespace + "/github/push",
                        .headers = {"Content-Type: application/json"},
                        .body = R"({"ref":"refs/heads/main"})"});
    });
    EXPECT_EQ(answer.status, 200) << answer.body;
    CO_ASSERT_EQ(events.requests().size(), 1U);
    EXPECT_EQ(events.requests()[0].body, R"({"ref":"refs/heads/main"})");
  }
  // Asks app-proxy through the router.
  Task<nlohmann::json> ask(std::string query, nlohmann::json variables = nlohmann::json::object()) {
    const nlohmann::json body{{"query", std::move(query)}, {"variables", std::move(variables)}};
    const auto answer = co_await aside([this, text = body.dump()] {
      return http_call(
          {.method = "POST",
           .url = router_url() + "/app-proxy/api/graphql",
           .headers = {"Content-Type: application/json", std::string("Authorization: ") + kAnn},
           .body = text});
    });
    EXPECT_EQ(answer.status, 200) << answer.body;
    auto json = nlohmann::json::parse(answer.body, nullptr, false);
    EXPECT_FALSE(json.is_discarded() || json.contains("errors")) << answer.body;
    co_return json.is_object() ? json : nlohmann::json::object();
  }
  Task<> graphql_answers() {
    const auto list = co_await ask("{gitIntegrations{name provider}}");
    EXPECT_EQ(list.value("/data/gitIntegrations/0/name"_json_pointer, ""), "default") << list;
  }
  Task<> git_integrations_work() {
    co_await ask("mutation($a: AddGitIntegrationArgs!){addGitIntegration(args: $a){name}}",
                 {{"a",
                   {{"name", "main"},
                    {"provider", "GITHUB"},
                    {"apiUrl", base.host.api_root().text()},
                    {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}}}});
    co_await ask(
        "mutation($a: RegisterToGitIntegrationArgs!){registerToGitIntegration(args: $a){name}}",
        {{"a", {{"name", "main"}, {"token", FakeGitHost::kToken}}}});
    const auto got = co_await ask("{gitIntegration(name: \"main\"){name registeredUsers}}");
    EXPECT_EQ(got.value("/data/gitIntegration/registeredUsers/0"_json_pointer, ""), "u-ann") << got;
    co_await ask("mutation{removeGitIntegration(name: \"main\")}");
  }
  // The archive of the components' logs. No kubelet has logs, but they are asked for.
  Task<> logs_are_read() {
    const auto answer = co_await aside([this] {
      return http_call({.url = router_url() + "/app-proxy/api/applications/logs",
                        .headers = {std::string("Authorization: ") + kAnn}});
    });
    EXPECT_EQ(answer.status, 200) << answer.body;
  }

  std::string logs() const {
    std::string out = ended_;
    for (const auto& [name, pod] : pods_) out += "--- " + name + "\n" + pod->log();
    return out;
  }
  Task<> stop() {
    co_await stop_pods();
    co_await base.stop();
  }
  const std::string& threadiness(const std::string& name) const { return revision_.at(name); }

  AuditedCluster& bed;
  GitHarness base;
  RecordingUpstream events{"events"};

 private:
  std::string router_url() const {
    return "http://127.0.0.1:" +
           std::to_string(pods_.at(kRouter)->logged(R"("message":"routing","port":)"));
  }

  std::filesystem::path image_;
  TempDir folder_;
  Helm helm_;
  int proxy_port_ = free_port();
  asio::thread_pool pool_{1};
  std::map<std::string, std::unique_ptr<RenderedWorkload>> prepared_;
  std::map<std::string, std::unique_ptr<ImageContainer>> pods_;
  std::map<std::string, std::string> revision_;
  std::string ended_;  // logs of processes that were stopped
};

// Kind and name of what a release or its daemons could leave.
inline std::set<std::string> objects(PeerCluster& cluster) {
  std::istringstream lines(cluster.kubectl_ok(
      {"-n", kNamespace, "get",
       "statefulsets,deployments,services,configmaps,secrets,serviceaccounts,roles,rolebindings,"
       "persistentvolumeclaims,leases,poddisruptionbudgets,clusterroles,clusterrolebindings",
       "-o", "name"}));
  std::set<std::string> all;
  for (std::string line; std::getline(lines, line);) all.insert(line);
  return all;
}

// The last commands of docs/operations/uninstall.md, which remove what the release leaves.
inline std::string removal_of_the_rest() {
  const auto page =
      read_file(std::filesystem::path(GITOPS_SOURCE_DIR) / "docs/operations/uninstall.md");
  const auto begin = page.rfind("```sh\n") + 6;
  return page.substr(begin, page.find("```", begin) - begin);
}

// What the release works on: an Application and a Rollout with its like.
inline void make_objects(AuditedCluster& bed) {
  auto& cluster = bed.cluster();
  cluster.apply_crds("argo-rollouts");
  cluster.apply_crds("argo-workflows");
  cluster.create_namespace("shop");
  const auto repository = bed.git().create_repository("shop");
  bed.git().commit("shop",
                   {{"map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n"}},
                   "first", {"Dana Levi", "dana@example.com"});
  bed.argocd().add_repository(bed.git(), "shop");
  bed.argocd().create_application("shop", repository, ".", "shop");
  const auto make = [&](const char* ns, const char* kind, const char* version,
                        nlohmann::json object) {
    object["apiVersion"] = version;
    object["kind"] = kind;
    object["metadata"]["name"] = "web";
    object["metadata"]["namespace"] = ns;
    cluster.apply(object.dump());
  };
  constexpr const char* kArgo = "argoproj.io/v1alpha1";
  make("shop", "Rollout", kArgo,
       nlohmann::json::parse(PeerRollouts::canary("web", "example.test/shop:1")));
  make("shop", "AnalysisRun", kArgo, nlohmann::json::parse(PeerRollouts::job_analysis("web")));
  make(kNamespace, "Workflow", kArgo, {{"spec", nlohmann::json::parse(PeerWorkflows::one_wait())}});
  const nlohmann::json owner{
      {"apiVersion", kArgo},
      {"kind", "Rollout"},
      {"name", "web"},
      {"uid", cluster.kubectl_ok({"-n", "shop", "get", "rollouts.argoproj.io", "web", "-o",
                                  "jsonpath={.metadata.uid}"})}};
  const nlohmann::json labels{{"app", "web"}};
  make("shop", "ReplicaSet", "apps/v1",
       {{"metadata", {{"ownerReferences", {owner}}}},
        {"spec",
         {{"replicas", 0},
          {"selector", {{"matchLabels", labels}}},
          {"template",
           {{"metadata", {{"labels", labels}}},
            {"spec", {{"containers", {{{"name", "web"}, {"image", "example.test/web:1"}}}}}}}}}}});
  // The account of docs/get-started/install.md, which docs/operations/uninstall.md removes.
  cluster.kubectl_ok({"-n", kNamespace, "patch", "configmap", "argocd-cm", "-p",
                      R"({"data":{"accounts.gitops-runtime":"apiKey"}})"});
  cluster.kubectl_ok({"-n", kNamespace, "patch", "configmap", "argocd-rbac-cm", "-p",
                      R"({"data":{"policy.gitops-runtime.csv":""}})"});
  for (const auto& [name, token] : {std::pair("codefresh-token", AppProxyHarness::kRuntime),
                                    std::pair("argocd-token", bed.argocd().token().c_str())}) {
    cluster.kubectl_ok({"-n", kNamespace, "create", "secret", "generic", name,
                        "--from-literal=token=" + std::string(token),
                        "--from-literal=encryptionIV=canary-iv"});
  }
}

}  // namespace gitops::test
