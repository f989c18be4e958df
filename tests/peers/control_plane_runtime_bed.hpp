#pragma once

#include <functional>
#include <iostream>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "daemons/app_proxy_process.hpp"
#include "daemons/control_plane_bed.hpp"
#include "daemons/reporter_process.hpp"
#include "daemons/router_harness.hpp"
#include "daemons/tunnel_processes.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_gitea.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

// A whole runtime on the real API server, with the real Argo CD, and the real control plane.
namespace gitops::test {

inline constexpr auto kTimeLimit = std::chrono::seconds(90);

struct RuntimePrograms {
  static std::optional<std::string> missing() {
    for (const auto& lacking : {PeerBed::missing(), PeerGitea::missing(), PeerRollouts::missing(),
                                PeerWorkflows::missing()}) {
      if (lacking) return lacking;
    }
    return std::nullopt;
  }
};

inline std::string secret_value(const std::string& ns, const std::string& name, const char* key) {
  const auto reply =
      peer_bed().cluster().request("GET", "/api/v1/namespaces/" + ns + "/secrets/" + name);
  if (!reply.ok()) return {};
  const auto json = nlohmann::json::parse(reply.body);
  const auto data = json.value("data", nlohmann::json::object());
  return base64_decode(data.value(key, "")).value_or("");
}

// An account of Argo CD for app-proxy, by which it makes its token. It has this password.
inline constexpr const char* kArgoCdUser = "runtime";
inline constexpr const char* kArgoCdPassword = "canary-argocd-password";

inline void make_argocd_account() {
  static bool is_made = false;
  if (std::exchange(is_made, true)) return;
  auto& bed = peer_bed();
  bed.cluster().kubectl_ok({"-n", PeerArgoCd::kNamespace, "patch", "configmap", "argocd-cm", "-p",
                            R"({"data":{"accounts.runtime":"apiKey, login"}})"});
  bed.cluster().kubectl_ok(
      {"-n", PeerArgoCd::kNamespace, "patch", "configmap", "argocd-rbac-cm", "-p",
       R"({"data":{"policy.csv":"g, bot, role:admin\ng, runtime, role:admin"}})"});
  const auto admin = nlohmann::json::parse(bed.argocd().request_ok(
      "POST", "/api/v1/session",
      nlohmann::json{{"username", "admin"}, {"password", bed.argocd().admin_password()}}.dump()));
  const nlohmann::json change{{"name", kArgoCdUser},
                              {"currentPassword", bed.argocd().admin_password()},
                              {"newPassword", kArgoCdPassword}};
  require_until(
      [&] {
        return http_call({.method = "PUT",
                          .url = bed.argocd().url() + "/api/v1/account/password",
                          .headers = {"Authorization: Bearer " + admin.value("token", ""),
                                      "Content-Type: application/json"},
                          .body = change.dump()})
            .ok();
      },
      kTimeLimit, "an account of Argo CD");
}

// The programs of one runtime. It has registered itself when the constructor returns.
class RuntimeBed {
 public:
  struct Options {
    std::string name;
    std::string runtime_namespace = PeerArgoCd::kNamespace;
    std::string ingress_host = {};  // empty: the router's URL
    Environment app_proxy = {};
  };

  RuntimeBed(ControlPlaneBed& control_plane, Options options)
      : plane(control_plane),
        name(options.name),
        ns(options.runtime_namespace),
        proxy_port_(free_port()),
        router_({std::string(GITOPS_BIN_DIR) + "/request-router"},
                {{"APP_PROXY_URL", "http://127.0.0.1:" + std::to_string(proxy_port_)},
                 {"POD_NAMESPACE", ns}},
                "") {
    make_argocd_account();
    options.app_proxy.merge(settings(options.ingress_host));
    proxy.emplace(options.app_proxy);
    require_until(
        [&] {
          return plane.runtime_of(token()) == name && proxy->status().state("account") == "ok";
        },
        kTimeLimit, "the registration", std::chrono::milliseconds(100));
  }
  ~RuntimeBed() {
    if (!testing::UnitTest::GetInstance()->Failed()) return;
    std::cerr << "app-proxy:\n" << proxy->log() << "router:\n" << router_.log();
    for (auto& reporter : reporters_) std::cerr << "reporter:\n" << reporter.log();
    std::cerr << "control plane:\n" << plane.program().log();
  }
  RuntimeBed(const RuntimeBed&) = delete;
  RuntimeBed& operator=(const RuntimeBed&) = delete;

  // The runtime's token, as app-proxy has stored it.
  [[nodiscard]] std::string token() const { return secret_value(ns, "codefresh-token", "token"); }
  [[nodiscard]] std::uint16_t router_port() const { return router_.port(); }

  // The event-reporters of Applications and of other resources.
  Task<> start_reporters() {
    write_file(folder_ / "token", token());
    for (const char* mode : {"app", "resource"}) {
      auto& reporter = reporters_.emplace_back(
          ReporterProcess::command({"--codefresh-token-file", (folder_ / "token").string()}),
          Environment{{"REPORTER_MODE", mode},
                      {"WORKFLOW_NAMESPACES", "*"},
                      {"POD_NAMESPACE", ns},
                      {"KUBECONFIG", peer_bed().cluster().kubeconfig().string()},
                      {"ARGOCD_SERVER", peer_bed().argocd().url()},
                      {"ARGO_CD_TOKEN_SECRET_NAME", "argocd-token"},
                      {"CODEFRESH_URL", plane.url()},
                      {"CODEFRESH_SSL_CERT_PATH", plane.ca_file().string()},
                      {"LEDGER_FILE", (folder_ / (std::string(mode) + ".db")).string()}},
          kTimeLimit);
      CO_ASSERT_TRUE(co_await reporter.wait_for_readyz("ready\n")) << reporter.report();
    }
  }
  Task<> stop() {
    for (auto& reporter : reporters_) EXPECT_EQ(co_await reporter.stop(), 0) << reporter.report();
    EXPECT_EQ(proxy->process().stop(std::chrono::seconds(20)), 0);
  }

  // Sends a document to app-proxy by the host that the control plane knows of.
  [[nodiscard]] HttpReply send(const std::string& key, const std::string& query,
                               const nlohmann::json& variables = nlohmann::json::object()) const {
    const std::string host =
        plane.ask("query R($name: String!){runtime(name: $name){ingressHost}}", {{"name", name}})
            .at("ingressHost");
    return http_call({.method = "POST",
                      .url = host + "/app-proxy/api/graphql",
                      .headers = {"Authorization: " + key, "Content-Type: application/json"},
                      .body = nlohmann::json{{"query", query}, {"variables", variables}}.dump()});
  }
  // As send(), as Ann, and returns the value of the first field; a failure of the test when the
  // response has errors.
  nlohmann::json ask(const std::string& query,
                     const nlohmann::json& variables = nlohmann::json::object()) const {
    const auto reply = send(kAnnKey, query, variables);
    const auto json = nlohmann::json::parse(reply.body, nullptr, false);
    EXPECT_TRUE(json.is_object() && !json.contains("errors")) << query << ": " << reply.body;
    return json.is_object() && json.contains("data") ? json["data"].begin().value()
                                                     : nlohmann::json();
  }

  ControlPlaneBed& plane;
  const std::string name;
  const std::string ns;
  std::optional<AppProxyProcess> proxy;

 private:
  Environment settings(const std::string& ingress_host) const {
    const auto router = "http://127.0.0.1:" + std::to_string(router_.port());
    return {{"CF_HOST", plane.url()},
            {"NODE_EXTRA_CA_CERTS", plane.ca_file().string()},
            {"PORT", std::to_string(proxy_port_)},
            {"KUBECONFIG", peer_bed().cluster().kubeconfig().string()},
            {"NAMESPACE", ns},
            {"RUNTIME_NAME", name},
            {"RUNTIME_TOKEN", ""},
            {"USER_TOKEN", kAnnKey},
            {"CHART_VERSION", "0.30.1"},
            {"RUNTIME_VERSION", "0.1.72"},
            {"INGRESS_HOST", ingress_host.empty() ? router : ingress_host},
            {"LEADER_ID", "pod-a"},
            {"RULES_REFRESH", "1s"},
            {"ARGO_CD_URL", peer_bed().argocd().url()},
            {"ARGO_CD_USERNAME", kArgoCdUser},
            {"ARGO_CD_PASSWORD", kArgoCdPassword}};
  }

  TempDir folder_;
  int proxy_port_;
  RouterProcess router_;
  std::list<ReporterProcess> reporters_;
};

// The repositories of an account at a real Gitea: "config" for the runtime, without a commit; "apps" with an Application
// "shop"; "shop" with what that deploys.
struct ShopRepositories {
  static constexpr const char* kWebImage = "registry.example.test/acme/web:1";

  ShopRepositories() {
    EXPECT_TRUE(gitea.api(ann, "POST", "/user/repos", R"({"name":"config"})").ok());
    for (const char* repository : {"apps", "shop"}) gitea.create_repository(ann, repository);
    put("apps", "shop.yaml",
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: "
        "argocd}\nspec:\n  project: default\n  source: {repoURL: \"" +
            url("shop") +
            "\", path: ., targetRevision: main}\n  destination: {server: "
            "\"https://kubernetes.default.svc\", namespace: shop}\n  syncPolicy: {automated: "
            "{}, syncOptions: [CreateNamespace=true]}\n");
    put("shop", "web.yaml",
        std::string("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n"
                    "  replicas: 1\n  selector: {matchLabels: {app: web}}\n  template:\n"
                    "    metadata: {labels: {app: web}}\n"
                    "    spec: {containers: [{name: main, image: \"") +
            kWebImage + "\"}]}\n");
    put("shop", "ui.json", PeerRollouts::canary("ui", "registry.example.test/acme/ui:1"));
  }

  [[nodiscard]] std::string url(const std::string& repository) const {
    return gitea.url() + "/ann/" + repository + ".git";
  }
  // Commits a file as Dana Levi and returns the commit's id.
  std::string put(const std::string& repository, const std::string& path, const std::string& text,
                  const std::string& message = "what the shop needs") const {
    using Json = nlohmann::json;
    const auto target = "/repos/ann/" + repository + "/contents/" + path;
    Json body{{"content", base64_encode(text)},
              {"message", message},
              {"author", {{"name", "Dana Levi"}, {"email", "dana@example.test"}}}};
    const auto before = gitea.api(ann, "GET", target);
    if (before.ok()) body["sha"] = Json::parse(before.body).at("sha");
    const auto reply = gitea.api(ann, before.ok() ? "PUT" : "POST", target, body.dump());
    EXPECT_TRUE(reply.ok()) << reply.body;
    return Json::parse(reply.body).at("commit").at("sha");
  }
  // Argo CD does not know the authority of this Gitea. It refuses a repository without commits.
  [[nodiscard]] bool is_trusted_by_argocd(const std::string& repository) const {
    return peer_bed()
        .argocd()
        .request("POST", "/api/v1/repositories?upsert=true",
                 nlohmann::json{{"repo", url(repository)},
                                {"username", ann.name},
                                {"password", ann.token},
                                {"insecure", true}}
                     .dump())
        .ok();
  }

  PeerGitea gitea;
  PeerGitea::User ann = gitea.create_user("ann");
};

// Lets Argo CD look at Git again, for which it otherwise waits minutes.
inline void refresh_applications(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    (void)peer_bed().argocd().request("GET", "/api/v1/applications/" + name + "?refresh=normal");
  }
}

// The value that `read` returns once `is_right`; a failure of the test with the last value otherwise. Blocks.
inline nlohmann::json shown(const std::string& what, const std::function<nlohmann::json()>& read,
                            const std::function<bool(const nlohmann::json&)>& is_right) {
  nlohmann::json last;
  const bool is_shown = wait_until(
      [&] {
        last = read();
        return is_right(last);
      },
      kTimeLimit, what, std::chrono::milliseconds(200));
  EXPECT_TRUE(is_shown) << what << ": " << last;
  return last;
}

// The runtime "fresh" behind an ingress, which has deployed the Application "shop" from a Git source "apps".
class ShopRuntime {
 public:
  ShopRuntime() : rollouts(peer_bed().cluster()), workflows(peer_bed().cluster()) {
    plane.set_git("GITEA", git.gitea.url() + "/api/v1", git.url("config"));
    write_file(folder_ / "ca.pem", read_file(plane.ca_file()) + read_file(git.gitea.ca_file()));
    bed.emplace(
        plane, RuntimeBed::Options{
                   .name = "fresh",
                   .app_proxy = {{"NODE_EXTRA_CA_CERTS", (folder_ / "ca.pem").string()},
                                 {"REPOS_DIR", (folder_ / "clones").string()},
                                 {"GIT_USERNAME", git.ann.name},
                                 {"GIT_PASSWORD", git.ann.token},
                                 {"SPECIAL_CLUSTER_ADDRESSES", "127.0.0.0/8"},
                                 {"IRW_REPORT_IMAGE_TASK_IMAGE", "registry.test/report-image:1"}}});
    run_coro([this]() -> Task<> { co_await bed->start_reporters(); }, 2 * kTimeLimit);
    bed->ask(
        "mutation($args: RegisterToGitIntegrationArgs!){registerToGitIntegration(args: "
        "$args){name}}",
        {{"args", {{"token", git.ann.token}}}});
    bed->ask("mutation($args: CreateGitSourceInput!){createGitSource(args: $args)}",
             {{"args",
               {{"appName", "apps"},
                {"appSpecifier", git.url("apps") + "?ref=main"},
                {"destServer", "https://kubernetes.default.svc"},
                {"destNamespace", PeerArgoCd::kNamespace}}}});
    for (const char* repository : {"apps", "shop", "config"}) {
      require_until([&] { return git.is_trusted_by_argocd(repository); }, kTimeLimit,
                    std::string("Argo CD to read ") + repository, std::chrono::milliseconds(200));
    }
    shown(
        "the Application",
        [this] {
          refresh_applications({"fresh", "in-cluster", "apps", "shop"});
          return shop();
        },
        [](const nlohmann::json& shop) {
          return shop.is_object() && shop["syncStatus"] == "SYNCED" &&
                 shop["healthStatus"] == "HEALTHY";
        });
  }

  [[nodiscard]] nlohmann::json shop() const {
    return plane.ask(R"({application(runtime: "fresh", namespace: "argocd", name: "shop") {
      syncStatus healthStatus syncPolicy destination {server namespace}
      appsRelations {parent {name}}
      status {revision commitAuthor commitMessage}}})");
  }
  // The releases of the Application, the newest first.
  [[nodiscard]] nlohmann::json releases() const {
    return plane.ask(R"({gitopsReleases(filters: {runtime: "fresh", name: "shop"},
      sort: {field: historyId, order: desc}, pagination: {first: 5}) {edges {node {
        current application {status {syncStatus healthStatus commitAuthor commitMessage}
          builds {workflowName}}
        toState {services {name images {image binaryId workflowName}} rollouts {name phase}}}}}})");
  }
  // The newest one; null when there is none.
  [[nodiscard]] nlohmann::json release() const {
    const auto slice = releases();
    return slice["edges"].empty() ? nlohmann::json() : slice["edges"][0]["node"];
  }
  // A request to a path of app-proxy by the host that the control plane knows of.
  [[nodiscard]] HttpReply call(const std::string& method, const std::string& path,
                               const std::string& key, const std::string& body = {}) const {
    const std::string host =
        plane.ask(R"({runtime(name: "fresh") {ingressHost}})").at("ingressHost");
    return http_call({.method = method,
                      .url = host + "/app-proxy/api" + path,
                      .headers = {"Authorization: " + key, "Content-Type: application/json"},
                      .body = body,
                      .timeout = kTimeLimit});
  }

  ShopRepositories git;
  ControlPlaneBed plane{
      {.engine = store::Engine::sqlite, .flags = {}, .members = {}, .teams = {{"devs", {kBobId}}}}};
  PeerRollouts rollouts;
  PeerWorkflows workflows;
  std::optional<RuntimeBed> bed;

 private:
  TempDir folder_;
};

}  // namespace gitops::test
