// The table of permissions in gitopsctl equals the permissions that the chart grants: every rule of every
// Role and ClusterRole, no more and no less.

#include "gitopsctl/permissions.hpp"

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"

namespace gitops::test {
namespace {

using ctl::Installation;
using ctl::Permission;
using nlohmann::json;
using testing::UnorderedElementsAreArray;

// One verb on one resource for one daemon: daemon, scope, group, resource, object name, verb.
using Grant =
    std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;

std::set<Grant> grants_of(const std::vector<Permission>& permissions) {
  std::set<Grant> grants;
  for (const Permission& permission : permissions) {
    const std::vector<std::string> any = {""};
    for (const std::string& name : permission.names.empty() ? any : permission.names) {
      for (const std::string& verb : permission.verbs) {
        grants.emplace(permission.daemon, permission.everywhere ? "cluster" : "namespace",
                       permission.group, permission.resource, name, verb);
      }
    }
  }
  return grants;
}

std::set<Grant> grants_of(const std::vector<json>& objects) {
  std::set<Grant> grants;
  for (const json& object : objects) {
    const bool cluster = object["kind"] == "ClusterRole";
    if (!cluster && object["kind"] != "Role") continue;
    std::string daemon = object["metadata"]["name"];
    if (cluster) daemon.erase(0, std::string("gitops-").size());  // the namespace of the release
    for (const json& rule : object["rules"]) {
      const json names = rule.value("resourceNames", json::array({""}));
      for (const json& group : rule["apiGroups"]) {
        for (const json& resource : rule["resources"]) {
          for (const json& name : names) {
            for (const json& verb : rule["verbs"]) {
              grants.emplace(daemon, cluster ? "cluster" : "namespace", group, resource, name,
                             verb);
            }
          }
        }
      }
    }
  }
  return grants;
}

struct Case {
  const char* name;
  std::vector<std::string> values;
  Installation installation;
};

class ChartPermissions : public testing::TestWithParam<Case> {};

TEST_P(ChartPermissions, AreThoseThatGitopsctlChecks) {
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  std::vector<std::string> arguments{"-f", values_file("minimal.yaml")};
  for (const std::string& value : GetParam().values) {
    arguments.insert(arguments.end(), {"--set", value});
  }
  const auto given = grants_of(Helm().render(arguments));
  EXPECT_FALSE(given.empty());
  EXPECT_THAT(grants_of(ctl::permissions_of_runtime(GetParam().installation)),
              UnorderedElementsAreArray(given));
}

INSTANTIATE_TEST_SUITE_P(
    Values, ChartPermissions,
    testing::Values(
        Case{"Default", {}, {}},
        Case{
            "SingleNamespace", {"global.runtime.singleNamespace=true"}, {.single_namespace = true}},
        Case{"ApplicationsInOneNamespace",
             {"argo-cd.configs.params.application\\.namespaces="},
             {.applications_everywhere = false}},
        Case{"WorkflowsEverywhere",
             {"event-reporters.cluster-event-reporter.config.workflow\\.namespaces=ci-*"},
             {.workflows_everywhere = true}},
        Case{"ManagedClusters",
             {"event-reporters.cluster-event-reporter.managedClusters=true"},
             {.managed_clusters = true}},
        Case{"NamedClusterSecrets",
             {"event-reporters.cluster-event-reporter.managedClusters=true",
              "event-reporters.cluster-event-reporter.clusterSecrets={cluster-a,cluster-b}"},
             {.managed_clusters = true, .cluster_secrets = {"cluster-a", "cluster-b"}}},
        Case{"Tunnels",
             {"global.codefresh.accountId=acc", "tunnel-server.enabled=true",
              "tunnel-server.subdomainHost=tunnels.example.com",
              "tunnel-server.auth.token.secretKeyRef.name=t",
              "tunnel-server.auth.token.secretKeyRef.key=t"},
             {}},
        Case{"ArgoEvents",
             {"event-reporters.cluster-event-reporter.form=argo-events"},
             {.argo_events = true}},
        Case{"ArgoEventsInOneNamespace",
             {"event-reporters.cluster-event-reporter.form=argo-events",
              "global.runtime.singleNamespace=true"},
             {.single_namespace = true, .argo_events = true}},
        Case{"AppProxy", {"app-proxy.enabled=true"}, {.app_proxy = true}},
        Case{"ImageReports",
             {"app-proxy.enabled=true", "app-proxy.image-enrichment.enabled=true"},
             {.app_proxy = true, .image_reports = true}},
        Case{"ImageReportsWithoutAppProxy", {"app-proxy.image-enrichment.enabled=true"}, {}},
        Case{"GitCredentials",
             {"app-proxy.enabled=true", "global.runtime.gitCredentials.password.value=x"},
             {.app_proxy = true, .git_credentials = true}},
        Case{"UserToken",
             {"app-proxy.enabled=true", "global.codefresh.userToken.token=x"},
             {.app_proxy = true, .registration = true}},
        Case{"UserTokenWithoutAppProxy", {"global.codefresh.userToken.token=x"}, {}},
        Case{"AppProxyActions",
             {"app-proxy.enabled=true", "app-proxy.actions.enabled=true"},
             {.app_proxy = true, .app_proxy_actions = true}},
        Case{"AppProxyActionsInOneNamespace",
             {"app-proxy.enabled=true", "app-proxy.actions.enabled=true",
              "global.runtime.singleNamespace=true"},
             {.single_namespace = true, .app_proxy = true, .app_proxy_actions = true}},
        Case{"Replicas", {"global.event-reporters.replicaCount=3"}, {.replicas = 3}},
        Case{"OwnTokenSecret",
             {"global.integrations.argo-cd.server.auth.type=token",
              "global.integrations.argo-cd.server.auth.tokenSecretKeyRef.name=mine",
              "global.integrations.argo-cd.server.auth.tokenSecretKeyRef.key=k"},
             {.argocd_token_secret = "mine"}},
        Case{"Password",
             {"global.integrations.argo-cd.server.auth.type=password",
              "global.integrations.argo-cd.server.auth.username=admin",
              "global.integrations.argo-cd.server.auth.passwordSecretKeyRef.name=mine",
              "global.integrations.argo-cd.server.auth.passwordSecretKeyRef.key=k"},
             {.argocd_token_secret = ""}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gitops::test
