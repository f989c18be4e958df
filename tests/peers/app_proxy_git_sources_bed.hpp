#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/core/process.hpp"
#include "daemons/reporter_process.hpp"
#include "doubles/fake_kube_api.hpp"
#include "peers/gitea_account.hpp"
#include "peers/go_sdk.hpp"
#include "peers/peer_bed.hpp"

// Every operation of the public Go SDK, with a check of its effect.
namespace gitops::test {

inline constexpr auto kTimeLimit = std::chrono::seconds(60);

inline std::string config_map(const std::string& name) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata: {a: b}\n";
}

// Argo CD looks at Git when it is asked, and otherwise after three minutes.
inline Task<bool> wait_for_argocd(const PeerArgoCd& argocd, const std::function<bool()>& done) {
  const auto deadline = deadline_after(kTimeLimit);
  while (!done()) {
    if (Clock::now() > deadline) {
      for (const char* name : {"prod", "in-cluster", "shop"}) {
        const auto app = argocd.request("GET", "/api/v1/applications/" + std::string(name));
        ADD_FAILURE() << name << ": " << app.body;
      }
      co_return false;
    }
    for (const char* parent : {"prod", "in-cluster", "shop"}) {
      (void)argocd.request("GET",
                           "/api/v1/applications/" + std::string(parent) + "?refresh=normal");
    }
    co_await sleep_for(std::chrono::milliseconds(300));
  }
  co_return true;
}

// One operation of the SDK: the method, its command of go-sdk-client, and what it must have done.
struct Operation {
  const char* method;
  const char* command;
  std::string arguments;
  std::function<Task<>(const nlohmann::json& result)> check;
};

inline constexpr const char* kCluster = "https://10.1.2.3:6443";

// All of them, in the order in which a runtime is set up, used and taken down.
inline std::vector<Operation> every_operation(PeerBed& bed, const GiteaAccount& git) {
  const auto has_config_map = [&](const std::string& name) {
    return bed.cluster().request("GET", "/api/v1/namespaces/shop/configmaps/" + name).ok();
  };
  const auto field = [&](const char* app, const char* path) {
    return bed.argocd().app_field(app, path);
  };
  const auto is = [](const char* key, const char* value) {
    return [key, value](const nlohmann::json& result) -> Task<> {
      EXPECT_EQ(result.value(key, ""), value) << result.dump();
      co_return;
    };
  };
  const auto argocd_does = [&](std::function<bool()> done) -> Task<> {
    EXPECT_TRUE(co_await wait_for_argocd(bed.argocd(), done));
  };
  return {
      {"VersionInfo.VersionInfo", "version-info", "",
       [](const nlohmann::json& result) -> Task<> {
         EXPECT_EQ(result.value("version", ""), gitops::version());
         co_return;
       }},
      {"GitIntegration.Add", "add-git-integration",
       nlohmann::json{{"provider", "GITHUB"},
                      {"apiUrl", git.gitea.url() + "/api/v1"},
                      {"sharingPolicy", "ACCOUNT_ADMINS"}}
           .dump(),
       is("name", "default")},
      {"GitIntegration.Edit", "edit-git-integration",
       nlohmann::json{{"apiUrl", ""}, {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}}.dump(),
       is("sharingPolicy", "ALL_USERS_IN_ACCOUNT")},
      {"GitIntegration.Register", "register-to-git-integration",
       nlohmann::json{{"token", git.ann.token}}.dump(),
       [](const nlohmann::json& result) -> Task<> {
         EXPECT_EQ(result["registeredUsers"], nlohmann::json::array({"u-ann"}));
         co_return;
       }},
      {"GitIntegration.List", "git-integrations", "",
       [](const nlohmann::json& result) -> Task<> {
         CO_ASSERT_EQ(result.size(), 1U);
         EXPECT_EQ(result[0]["users"][0]["userId"], "u-ann");
       }},
      {"GitIntegration.Get", "git-integration", "default",
       is("sharingPolicy", "ALL_USERS_IN_ACCOUNT")},
      {"GitSource.Create", "create-git-source",
       nlohmann::json{{"appName", "shop"},
                      {"appSpecifier", git.url("shop") + "/one?ref=main"},
                      {"destServer", "https://kubernetes.default.svc"},
                      {"destNamespace", "shop"},
                      {"isInternal", false},
                      {"include", ""},
                      {"exclude", ""},
                      {"createRepo", false}}
           .dump(),
       [&bed, &git, has_config_map, field, argocd_does](const nlohmann::json&) -> Task<> {
         // app-proxy has put the runtime's own Application into the cluster.
         bed.argocd().request_ok("POST", "/api/v1/repositories", git.for_argocd("config"));
         co_await argocd_does([&] { return has_config_map("from-one"); });
         EXPECT_EQ(field("shop", "{.metadata.labels.codefresh\\.io/entity}"), "git-source");
         EXPECT_EQ(field("shop", "{.spec.project}"), "cf-git-sources");
         co_await argocd_does(
             [&] { return field("default-git-source", "{.status.sync.status}") == "Synced"; });
       }},
      {"GitSource.Edit", "edit-git-source",
       nlohmann::json{{"appName", "shop"}, {"appSpecifier", git.url("shop") + "/two?ref=main"}}
           .dump(),
       [has_config_map, argocd_does](const nlohmann::json&) -> Task<> {
         co_await argocd_does(
             [&] { return has_config_map("from-two") && !has_config_map("from-one"); });
       }},
      {"GitSource.Delete", "delete-git-source", "shop",
       [&bed, has_config_map](const nlohmann::json&) -> Task<> {
         // Nothing is left to wait for.
         EXPECT_FALSE(has_config_map("from-two"));
         EXPECT_NE(bed.argocd().request("GET", "/api/v1/applications/shop").status, 200);
         co_return;
       }},
      {"Cluster.CreateArgoRollouts", "create-argo-rollouts",
       nlohmann::json{{"destServer", "https://kubernetes.default.svc"},
                      {"destNamespace", "argo-rollouts"}}
           .dump(),
       [&bed, argocd_does](const nlohmann::json&) -> Task<> {
         co_await argocd_does([&] {
           return bed.argocd().request("GET", "/api/v1/applications/argo-rollouts-in-cluster").ok();
         });
       }},
      {"Cluster.Delete", "remove-cluster",
       nlohmann::json{{"server", kCluster}, {"runtime", "prod"}}.dump(),
       [&bed](const nlohmann::json&) -> Task<> {
         EXPECT_FALSE(bed.argocd().request_ok("GET", "/api/v1/clusters").contains(kCluster));
         co_return;
       }},
      {"ISC.RemoveRuntimeFromIscRepo", "remove-runtime-from-isc-repo", "",
       [&git](const nlohmann::json& result) -> Task<> {
         EXPECT_EQ(result, 4);
         EXPECT_EQ(git.gitea.git(git.ann, "config", {"ls-tree", "-r", "--name-only", "main"}).out,
                   "resources/README.md\nresources/app-projects/cf-git-sources.yaml\n");
         co_return;
       }},
      {"GitIntegration.Deregister", "deregister-from-git-integration", "",
       [](const nlohmann::json& result) -> Task<> {
         EXPECT_EQ(result["registeredUsers"], nlohmann::json::array());
         co_return;
       }},
      {"GitIntegration.Remove", "remove-git-integration", "default",
       [](const nlohmann::json& result) -> Task<> {
         EXPECT_EQ(result, nlohmann::json());
         co_return;
       }},
  };
}

}  // namespace gitops::test
