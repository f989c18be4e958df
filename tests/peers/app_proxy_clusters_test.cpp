// A managed cluster: a second API server that the running app-proxy adds to a real Argo CD by the request of the
// add-cluster Job, to which Argo CD deploys, of which the event-reporter tells, and which is removed again. app-proxy has
// the permissions that the chart gives it, and the API server's audit log tells which it used. The control plane is the
// double.
#include <gmock/gmock.h>

#include "chart/helm.hpp"
#include "daemons/reporter_process.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "peers/peer_bed.hpp"
#include "peers/permission_audit.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
constexpr auto kAnn = AppProxyHarness::kAnn;
constexpr auto kTimeLimit = std::chrono::seconds(90);
// The context of the clusters' kubeconfigs.
constexpr const char* kName = "test";

std::string config_map(const std::string& name) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name +
         ", namespace: default}\ndata: {a: b}\n";
}

bool has_config_map(const PeerCluster& cluster, const std::string& name) {
  return cluster.request("GET", "/api/v1/namespaces/default/configmaps/" + name).ok();
}

constexpr const char* kNamespace = PeerArgoCd::kNamespace;
constexpr const char* kRegistration = "global.codefresh.userToken.token=x";
constexpr const char* kGitToken = "global.runtime.gitCredentials.password.value=x";

struct Programs {
  static std::optional<std::string> missing() {
    if (auto lacking = Helm::missing()) return lacking;
    return PeerBed::missing();
  }
};

// The ServiceAccount of app-proxy and its permissions, as the chart renders them with these values.
std::vector<Json> account(const std::vector<std::string>& values) {
  std::vector<std::string> arguments{"--namespace", kNamespace,
                                     "-f",          values_file("minimal.yaml"),
                                     "--set",       "app-proxy.enabled=true"};
  for (const auto& value : values) arguments.insert(arguments.end(), {"--set", value});
  auto objects = Helm().render(arguments);
  std::erase_if(objects, [](const Json& one) {
    const std::string kind = one["kind"];
    return one["metadata"]["name"] != "cap-app-proxy" ||
           (kind != "ServiceAccount" && !kind.starts_with("Role"));
  });
  return objects;
}

TEST(ManagedClusters, AreAddedDeployedToReportedAndRemoved) {
  GITOPS_REQUIRE_PEER(Programs);
  const PermissionAudit audit({kNamespace});
  PeerBed bed(ArgoCdRelease::v3_2, {.api_server_flags = audit.flags()});
  const auto objects = account({kRegistration, kGitToken});
  for (const Json& one : objects) bed.cluster().apply(one.dump());
  const auto own_kubeconfig = bed.cluster().write_kubeconfig(
      "cap-app-proxy", bed.cluster().service_account_token(kNamespace, "cap-app-proxy"));
  const PeerCluster edge;
  const auto config = bed.git().create_repository("clusters-config");
  bed.git().commit(
      "clusters-config",
      {{"resources/all-runtimes-all-clusters/everywhere.yaml", config_map("everywhere")}},
      "what every cluster has");
  const auto shop = bed.git().create_repository("clusters-shop");
  bed.git().commit("clusters-shop", {{"shop/cm.yaml", config_map("from-shop")}}, "shop");
  const auto session = Json::parse(bed.argocd().request_ok(
      "POST", "/api/v1/session",
      Json{{"username", "admin"}, {"password", bed.argocd().admin_password()}}.dump()));
  const std::string token = session.value("token", "");
  const auto argocd = [&](const std::string& method, const std::string& path,
                          const std::string& body = {}) {
    return http_call(
        {.method = method,
         .url = bed.argocd().url() + path,
         .headers = {"Authorization: Bearer " + token, "Content-Type: application/json"},
         .body = body});
  };
  for (const auto& url : {config, shop}) {
    const auto added = argocd(
        "POST", "/api/v1/repositories?upsert=true",
        Json{{"repo", url}, {"username", bed.git().username()}, {"password", bed.git().password()}}
            .dump());
    ASSERT_TRUE(added.ok()) << added.body;
  }
  in_app_proxy_harness(
      [&](AppProxyHarness& harness) -> Task<> {
        auto& accounts = harness.platform.accounts();
        accounts.add({.id = "acc-1",
                      .name = "acme",
                      .admins = {"u-ann"},
                      .git_provider = {},
                      .shared_config_repo = config});
        TempDir folder;
        harness.start({{"KUBECONFIG", own_kubeconfig.string()},
                       {"NAMESPACE", kNamespace},
                       {"USER_TOKEN", kAnn},
                       {"RUNTIME_STORE_IV", "canary-iv"},
                       {"SPECIAL_CLUSTER_ADDRESSES", "127.0.0.0/8"},
                       {"ARGO_CD_URL", bed.argocd().url()},
                       {"ARGO_CD_TOKEN", token},
                       {"REPOS_DIR", (folder / "clones").string()},
                       {"GIT_INSECURE_HTTP", "true"},
                       {"GIT_USERNAME", bed.git().username()},
                       {"GIT_PASSWORD", bed.git().password()}});
        co_await harness.account_known();
        // As the Job makes it of the cluster's kubeconfig.
        const auto kubeconfig =
            edge.kubectl_ok({"config", "view", "--minify", "--flatten", "--output", "json"});
        const Json body{{"name", kName},
                        {"kubeConfig", base64_encode(kubeconfig)},
                        {"annotations", ""},
                        {"labels", base64_encode("env: edge\n")}};
        const auto added = co_await harness.send(
            {.method = "POST",
             .target = "/app-proxy/api/clusters",
             .headers = {{"Authorization", kAnn}, {"Content-Type", "application/json"}},
             .body = body.dump()});
        CO_ASSERT_EQ(added.status, 201) << added.body;
        // Argo CD takes the Secret for one of its own.
        const auto listed = argocd("GET", "/api/v1/clusters").body;
        EXPECT_THAT(listed, HasSubstr(edge.server_url()));

        write_file(folder / "platform-token", "platform-token");
        bed.cluster().apply(
            R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"reporter-token","namespace":")" +
            std::string(PeerArgoCd::kNamespace) + R"("},"stringData":{"token":")" + token +
            R"("}})");
        ReporterProcess reporter(ReporterProcess::command({"--codefresh-token-file",
                                                           (folder / "platform-token").string()}),
                                 {{"REPORTER_MODE", "app"},
                                  {"POD_NAMESPACE", PeerArgoCd::kNamespace},
                                  {"KUBECONFIG", bed.cluster().kubeconfig().string()},
                                  {"ARGOCD_SERVER", bed.argocd().url()},
                                  {"ARGO_CD_TOKEN_SECRET_NAME", "reporter-token"},
                                  {"CODEFRESH_URL", harness.platform.url().to_string()},
                                  {"LEDGER_FILE", (folder / "ledger.db").string()}},
                                 kTimeLimit);
        CO_ASSERT_TRUE(co_await reporter.wait_for_readyz("ready\n")) << reporter.report();

        // What every cluster has, by the shared configuration repository; and an Application of a user.
        const auto created = argocd(
            "POST", "/api/v1/applications",
            Json{{"metadata",
                  {{"name", "clusters-shop"},
                   {"finalizers", {"resources-finalizer.argocd.argoproj.io"}}}},
                 {"spec",
                  {{"project", "default"},
                   {"source", {{"repoURL", shop}, {"path", "shop"}, {"targetRevision", "main"}}},
                   {"destination", {{"server", edge.server_url()}, {"namespace", "default"}}},
                   {"syncPolicy", {{"automated", Json::object()}}}}}}
                .dump());
        EXPECT_TRUE(created.ok()) << created.body;
        const bool is_deployed = co_await eventually(
            [&] {
              for (const char* name : {"prod", kName, "clusters-shop"}) {
                (void)argocd("GET",
                             "/api/v1/applications/" + std::string(name) + "?refresh=normal");
              }
              return has_config_map(edge, "everywhere") && has_config_map(edge, "from-shop");
            },
            "what is deployed to the cluster", kTimeLimit);
        if (!is_deployed) {
          ADD_FAILURE() << argocd("GET", "/api/v1/applications/prod").body << "\n"
                        << argocd("GET", std::string("/api/v1/applications/") + kName).body << "\n"
                        << harness.daemon->status();
        }

        // What the user's Application has there is told, and of which cluster it is.
        const auto told_from_edge = [&](bool deleted) {
          return [&, deleted](const FakePlatform::Report& report) {
            // Two empty manifests tell the deletion of a resource.
            return report.name() == "from-shop" &&
                   (report.source("actualManifest").empty() &&
                    report.source("desiredManifest").empty()) == deleted;
          };
        };
        const auto* synced =
            co_await harness.platform.wait_for(told_from_edge(false), deadline_after(kTimeLimit));
        CO_ASSERT_TRUE(synced != nullptr) << reporter.report();
        EXPECT_EQ(synced->source("cluster"), edge.server_url()) << synced->data;

        // The control plane learns what Argo CD finds out about the cluster.
        const auto& told = accounts.life().clusters;
        const auto last = [&]() -> Json {
          Json found = Json::object();
          for (const Json& list : told) {
            for (const Json& one : list) {
              if (one["server"] == edge.server_url()) found = one;
            }
          }
          return found;
        };
        EXPECT_TRUE(co_await eventually(
            [&] {
              const auto info = last().value("info", Json::object());
              return info.is_object() &&
                     info.value("/connectionState/status"_json_pointer, "") == "Successful" &&
                     info.value("applicationsCount", 0) == 2 &&
                     !info.value("serverVersion", "").empty();
            },
            "the report of the cluster", kTimeLimit))
            << last();

        (void)argocd("DELETE", "/api/v1/applications/clusters-shop");
        EXPECT_TRUE(co_await eventually([&] { return !has_config_map(edge, "from-shop"); },
                                        "the end of the Application", kTimeLimit));
        EXPECT_NE(
            co_await harness.platform.wait_for(told_from_edge(true), deadline_after(kTimeLimit)),
            nullptr)
            << reporter.report();
        EXPECT_EQ(co_await reporter.stop(), 0);
        const auto removed = co_await harness.ask(
            "mutation RemoveCluster($server: String!, $runtime: String!) "
            "{\n\tremoveCluster(server: "
            "$server, runtime: $runtime)\n}\n",
            AppProxyHarness::as(kAnn), {{"server", edge.server_url()}, {"runtime", "prod"}});
        EXPECT_FALSE(removed.json.contains("errors")) << removed.body;
        // Argo CD had removed what it had applied, before its credentials went.
        EXPECT_FALSE(has_config_map(edge, "everywhere"));
        EXPECT_THAT(argocd("GET", "/api/v1/clusters").body, Not(HasSubstr(edge.server_url())));
        EXPECT_EQ(bed.git().file_at_head("clusters-config", "runtimes/prod/test.yaml"),
                  std::nullopt);
        EXPECT_TRUE(co_await eventually(
            [&] {
              return last().value("/info/connectionState/status"_json_pointer, "") == "Unknown";
            },
            "the end of the cluster", kTimeLimit));
        EXPECT_THAT(harness.daemon->log(), Not(HasSubstr(edge.admin_token())));
      },
      4 * kTimeLimit);
  // What the registration and the Git token add to the permissions is used, and nothing was wanting.
  const auto granted = permissions_granted(objects, kNamespace);
  auto added = granted;
  for (const auto& without : permissions_granted(account({}), kNamespace)) added.erase(without);
  // By removeRuntimeFromIscRepo, which needs an integration of a user's: see
  // RemovedRuntime.TakesItsApplicationAway.
  EXPECT_EQ(added.erase({"cap-app-proxy", "argoproj.io", "applications", "delete"}), 1U);
  const auto used = audit.used(kNamespace);
  expect_each_used(added, used);
  // Argo CD's own accounts are in this namespace, too.
  std::set<PermissionUse> of_app_proxy;
  for (const auto& use : used) {
    if (std::get<0>(use) == "cap-app-proxy") of_app_proxy.insert(use);
  }
  expect_each_granted(of_app_proxy, granted);
  for (const auto& refused : audit.refused(kNamespace)) {
    EXPECT_FALSE(refused.starts_with("cap-app-proxy:")) << refused;
  }
}

}  // namespace
}  // namespace gitops::test
