// The chart installed by the real helm into a real API server, in namespaces that admit restricted
// pods only.
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "chart/chart_install_bed.hpp"
#include "chart/helm.hpp"
#include "peers/peer_cluster.hpp"
#include "support/wait.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::ResultOf;

TEST_F(ChartInstallTest, AC44_InstallsUpgradesAndLeavesNothingBehind) {
  const auto before = everything(ns_);

  const auto installed = helm("install", ns_, {"--set", "global.event-reporters.replicaCount=2"});
  ASSERT_TRUE(installed.ok()) << installed.err;
  EXPECT_THAT(installed.err, Not(HasSubstr("PodSecurity")));
  EXPECT_THAT(installed.out, HasSubstr("reports to https://cp.example.com"));
  for (const std::string reporter : {"runtime-event-reporter", "cluster-event-reporter"}) {
    ASSERT_TRUE(ready(ns_, 2, reporter));
    for (const auto* number : {"-0", "-1"}) {
      EXPECT_EQ(get(ns_, "pod", reporter + number).at("/spec/serviceAccountName"_json_pointer),
                reporter);
    }
    EXPECT_EQ(get(ns_, "pdb", reporter).at("/spec/maxUnavailable"_json_pointer), 1);
  }
  EXPECT_TRUE(wait_until(
      [&] {
        return get(ns_, "deployment", "internal-router")
                   .value("/status/readyReplicas"_json_pointer, 0) == 1;
      },
      kTimeLimit, "the router's pod", std::chrono::milliseconds(200)));
  const auto annotations = "/spec/template/metadata/annotations"_json_pointer;
  const auto first = get(ns_, "statefulset", "runtime-event-reporter").at(annotations);

  const auto upgraded = helm("upgrade", ns_,
                             {"--set", "global.event-reporters.replicaCount=3", "--set",
                              "global.event-reporters.config.threadiness=7"});
  ASSERT_TRUE(upgraded.ok()) << upgraded.err;
  ASSERT_TRUE(ready(ns_, 3));
  const auto second = get(ns_, "statefulset", "runtime-event-reporter").at(annotations);
  EXPECT_NE(first.at("checksum/config"), second.at("checksum/config"));
  EXPECT_EQ(first.at("checksum/codefresh-cm"), second.at("checksum/codefresh-cm"));
  EXPECT_EQ(get(ns_, "pod", "runtime-event-reporter-0")
                .at("/metadata/annotations/checksum~1config"_json_pointer),
            second.at("checksum/config"));
  EXPECT_EQ(get(ns_, "configmap", "runtime-event-reporter-cmd-params-cm")
                .at("/data/threadiness"_json_pointer),
            "7");

  const auto gone = helm_.run({"uninstall", "rt", "-n", ns_, "--wait"}, cluster_->kubeconfig());
  ASSERT_TRUE(gone.ok()) << gone.err;
  EXPECT_TRUE(wait_until([&] { return everything(ns_) == before; }, kTimeLimit,
                         "the namespace to be as before", std::chrono::milliseconds(500)))
      << testing::PrintToString(everything(ns_));
}

TEST_F(ChartInstallTest, AC44_InstallsTheTunnelWhereThereIsNoOtherWayIn) {
  const std::string account = "global.codefresh.accountId=0123456789abcdef01234567";
  const auto tunnel = "deployment/codefresh-tunnel-client";
  const auto installed =
      helm("install", ns_, {"--set", account, "--set", "tunnel-client.networkPolicy.enabled=true"});
  ASSERT_TRUE(installed.ok()) << installed.err;
  EXPECT_THAT(installed.err, Not(HasSubstr("PodSecurity")));
  EXPECT_THAT(installed.out, HasSubstr("https://0123456789abcdef01234567-demo.tunnels.cf-cd.com"));
  EXPECT_TRUE(wait_until(
      [&] {
        return get(ns_, "deployment", "codefresh-tunnel-client")
                   .value("/status/readyReplicas"_json_pointer, 0) == 1;
      },
      kTimeLimit, "the tunnel's pod", std::chrono::milliseconds(200)));
  expect_granted(ns_, IsEmpty(), "codefresh-tunnel-client");
  EXPECT_TRUE(
      cluster_->kubectl({"-n", ns_, "get", "networkpolicy", "codefresh-tunnel-client"}).ok());

  // Another way in takes its place.
  const auto upgraded = helm("upgrade", ns_,
                             {"--set", account, "--set", "global.runtime.ingress.enabled=true",
                              "--set", "global.runtime.ingress.hosts[0]=a.example.com"});
  ASSERT_TRUE(upgraded.ok()) << upgraded.err;
  EXPECT_FALSE(cluster_->kubectl({"-n", ns_, "get", tunnel}).ok());
  EXPECT_EQ(get(ns_, "configmap", "codefresh-cm").at("/data/ingressHost"_json_pointer),
            "https://a.example.com");
}

TEST_F(ChartInstallTest, AC44_InstallsTheTunnelServerOnRequest) {
  cluster_->kubectl_ok({"-n", ns_, "create", "secret", "generic", "runtimes",
                        "--from-literal=list=acc-demo token", "--from-literal=token=x"});
  TempDir folder;
  json values{
      {"tunnel-server",
       {{"enabled", true},
        {"replicaCount", 2},
        {"subdomainHost", "tunnels.example.com"},
        {"auth", {{"runtimes", {{"secretKeyRef", {{"name", "runtimes"}, {"key", "list"}}}}}}},
        {"clients",
         {{"hosts", {"c-0.example.com", "c-1.example.com"}}, {"ingress", {{"enabled", true}}}}},
        {"users",
         {{"ingress",
           {{"enabled", true},
            {"tls", {{{"secretName", "wild"}, {"hosts", {"*.tunnels.example.com"}}}}},
            {"annotations", {{"cert-manager.io/cluster-issuer", "letsencrypt"}}}}}}},
        {"api",
         {{"enabled", true},
          {"token", {{"secretKeyRef", {{"name", "runtimes"}, {"key", "token"}}}}}}},
        {"readinessProbe", {{"initialDelaySeconds", 1}}},
        {"networkPolicy", {{"enabled", true}}}}}};
  write_file(folder / "values.json", values.dump());
  const auto installed = helm("install", ns_, {"-f", folder / "values.json"});
  ASSERT_TRUE(installed.ok()) << installed.err;
  EXPECT_THAT(installed.err, Not(HasSubstr("arning")));
  EXPECT_THAT(installed.out, HasSubstr("*.tunnels.example.com"));
  ASSERT_TRUE(ready(ns_, 2, "tunnel-server"));
  expect_granted(ns_, IsEmpty(), "tunnel-server");
  EXPECT_EQ(get(ns_, "pdb", "tunnel-server").at("/spec/maxUnavailable"_json_pointer), 1);
  EXPECT_EQ(get(ns_, "networkpolicy", "tunnel-server").at("/spec/ingress"_json_pointer).size(), 3U);

  // Pods behind each Service: users reach both, the clients of a host one.
  const auto pods_behind = [&](const std::string& service) {
    std::set<std::string> pods;
    const auto slices =
        json::parse(cluster_->kubectl_ok({"-n", ns_, "get", "endpointslices", "-l",
                                          "kubernetes.io/service-name=" + service, "-o", "json"}));
    for (const auto& slice : slices.at("items")) {
      for (const auto& endpoint : slice.value("endpoints", json::array())) {
        if (endpoint.at("/conditions/ready"_json_pointer) == true) {
          pods.insert(endpoint.at("/targetRef/name"_json_pointer));
        }
      }
    }
    return pods;
  };
  const std::set<std::string> both{"tunnel-server-0", "tunnel-server-1"};
  const auto expect_behind = [&](const std::string& service, const std::set<std::string>& pods) {
    EXPECT_TRUE(wait_until([&] { return pods_behind(service) == pods; }, kTimeLimit,
                           "the pods of Service " + service, std::chrono::milliseconds(200)))
        << testing::PrintToString(pods_behind(service));
  };
  expect_behind("tunnel-server", both);
  expect_behind("tunnel-server-admin", both);
  for (const auto& pod : both) expect_behind(pod, {pod});
  const auto rules = get(ns_, "ingress", "tunnel-server-clients").at("/spec/rules"_json_pointer);
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[1].at("/http/paths/0/backend/service/name"_json_pointer), "tunnel-server-1");
  EXPECT_EQ(get(ns_, "ingress", "tunnel-server").at("/spec/rules/0/host"_json_pointer),
            "*.tunnels.example.com");

  // Nothing of it stays when it is not wanted any more.
  ASSERT_TRUE(helm("upgrade", ns_).ok());
  EXPECT_TRUE(wait_until(
      [&] {
        return !cluster_
                    ->kubectl_ok({"-n", ns_, "get",
                                  "statefulset,service,ingress,pdb,networkpolicy,serviceaccount",
                                  "-o", "name"})
                    .contains("tunnel-server");
      },
      kTimeLimit, "the tunnel-server to go", std::chrono::milliseconds(200)));
}

TEST_F(ChartInstallTest, AC44_TheNamespaceRefusesPodsThatAreNotRestricted) {
  // Shows that the check above can fail.
  const auto installed = helm(
      "install", ns_, {"--set", "global.event-reporters.securityContext.capabilities.drop=null"});
  ASSERT_TRUE(installed.ok()) << installed.err;
  EXPECT_THAT(installed.err, HasSubstr("PodSecurity"));
  EXPECT_TRUE(wait_until(
      [&] {
        return cluster_
                   ->kubectl_ok({"-n", ns_, "get", "events", "-o", "jsonpath={.items[*].message}"})
                   .find("violates PodSecurity \"restricted") != std::string::npos;
      },
      kTimeLimit, "an event about the refused pod"));
}

// The permissions on the Leases of that name and these ends.
std::set<std::string> on_leases(const std::string& name, const std::vector<std::string>& ends) {
  std::set<std::string> all;
  for (const auto& end : ends) {
    const auto lease = " leases.coordination.k8s.io/" + name + "-" + end;
    all.merge(std::set<std::string>{"get" + lease, "update" + lease});
  }
  return all;
}

TEST_F(ChartInstallTest, GrantsWhatTheReporterNeedsAndNothingElse) {
  ASSERT_TRUE(helm("install", ns_).ok());
  const std::set<std::string> applications{"get applications.argoproj.io",
                                           "list applications.argoproj.io",
                                           "watch applications.argoproj.io"};
  auto expected = applications;
  expected.merge(std::set<std::string>{"get configmaps/argocd-cm", "get secrets/argocd-token"});
  expected.merge(on_leases("event-reporter-app", {"layout"}));
  expect_granted(ns_, expected);
  expect_granted("kube-system", applications);

  EXPECT_TRUE(may({"watch", "applications.argoproj.io"}));
  EXPECT_TRUE(may({"list", "applications.argoproj.io", "--all-namespaces"}));
  EXPECT_TRUE(may({"get", "secret/argocd-token"}));
  EXPECT_FALSE(may({"get", "secret/codefresh-token"}));
  EXPECT_FALSE(may({"list", "secrets"}));
  EXPECT_FALSE(may({"create", "configmaps"}));
  EXPECT_FALSE(may({"patch", "applications.argoproj.io"}));
}

TEST_F(ChartInstallTest, GrantsTheRouterNothing) {
  ASSERT_TRUE(helm("install", ns_).ok());
  expect_granted(ns_, IsEmpty(), "internal-router");
}

TEST_F(ChartInstallTest, GrantsAppProxyTheSecretsAndLogsOfItsNamespaceAndNothingElse) {
  ASSERT_TRUE(helm("install", ns_, {"--set", "app-proxy.enabled=true"}).ok());
  const std::set<std::string> expected{"create secrets", "delete secrets", "get pods/log",
                                       "get secrets",    "list pods",      "list secrets",
                                       "update secrets"};
  expect_granted(ns_, expected, "cap-app-proxy");
  expect_granted("kube-system", IsEmpty(), "cap-app-proxy");

  ASSERT_TRUE(helm("upgrade", ns_, {"--set", "app-proxy.enabled=false"}).ok());
  EXPECT_FALSE(cluster_->kubectl({"-n", ns_, "get", "role", "cap-app-proxy"}).ok());
}

TEST_F(ChartInstallTest, GrantsWorkflowsThatReportImagesTheirResultsAndNothingElse) {
  const std::vector<std::string> reports{"--set", "app-proxy.enabled=true", "--set",
                                         "app-proxy.image-enrichment.enabled=true"};
  ASSERT_TRUE(helm("install", ns_, reports).ok());
  const std::string account = "codefresh-image-enrichment-sa";
  expect_granted(ns_,
                 (std::set<std::string>{"create workflowtaskresults.argoproj.io",
                                        "patch workflowtaskresults.argoproj.io"}),
                 account);
  expect_granted("kube-system", IsEmpty(), account);
  expect_granted(ns_,
                 IsSupersetOf({"create workflows.argoproj.io", "delete workflows.argoproj.io",
                               "get workflows.argoproj.io"}),
                 "cap-app-proxy");
  expect_granted("kube-system", IsEmpty(), "cap-app-proxy");
  const std::string limits = "workflow-synchronization-semaphores";
  EXPECT_EQ(get(ns_, "configmap", limits).at("data"), json({{"imageReportExecutor", "5"}}));

  ASSERT_TRUE(helm_.run({"uninstall", "rt", "-n", ns_}, cluster_->kubeconfig()).ok());
  EXPECT_FALSE(cluster_->kubectl({"-n", ns_, "get", "serviceaccount", account}).ok());

  // A ConfigMap of that name which others keep stays theirs.
  cluster_->kubectl_ok(
      {"-n", ns_, "create", "configmap", limits, "--from-literal=imageReportExecutor=1"});
  const auto installed = helm("install", ns_, reports);
  ASSERT_TRUE(installed.ok()) << installed.err;
  EXPECT_EQ(get(ns_, "configmap", limits).at("data"), json({{"imageReportExecutor", "1"}}));
}

TEST_F(ChartInstallTest, GrantsTheLeasesOfItsShardsAndNoOther) {
  ASSERT_TRUE(helm("install", ns_, {"--set", "global.event-reporters.replicaCount=2"}).ok());
  const auto leases = [](const std::set<std::string>& permissions) {
    std::set<std::string> some;
    std::ranges::copy_if(
        permissions, std::inserter(some, some.end()),
        [](const std::string& permission) { return permission.contains("leases"); });
    return some;
  };
  auto expected = on_leases("event-reporter-app", {"0", "1", "layout"});
  expected.merge(std::set<std::string>{"create leases.coordination.k8s.io",
                                       "list leases.coordination.k8s.io"});
  expect_granted(ns_, ResultOf(leases, expected));
  EXPECT_FALSE(may({"update", "leases.coordination.k8s.io/somebody-elses"}));
  EXPECT_FALSE(may({"delete", "leases.coordination.k8s.io/event-reporter-app-0"}));
  expect_granted("kube-system", Not(Contains(HasSubstr("leases"))));
}

// "<verb> <resource>" for each of the three verbs with which a kind is watched.
std::set<std::string> watching(const std::vector<std::string>& resources) {
  std::set<std::string> all;
  for (const auto& resource : resources) {
    for (const auto* verb : {"get", "list", "watch"})
      all.insert(std::string(verb) + " " + resource);
  }
  return all;
}

TEST_F(ChartInstallTest, GrantsWhatTheReporterOfResourcesNeedsAndNothingElse) {
  const std::string account = "cluster-event-reporter";
  const auto everywhere =
      watching({"rollouts.argoproj.io", "analysisruns.argoproj.io", "replicasets.apps"});
  const auto here = [](std::set<std::string> permissions, const std::vector<std::string>& leases) {
    permissions.merge(watching({"workflows.argoproj.io"}));
    permissions.merge(on_leases("event-reporter-resource", leases));
    return permissions;
  };
  ASSERT_TRUE(helm("install", ns_).ok());
  expect_granted(ns_, here(everywhere, {"layout"}), account);
  expect_granted("kube-system", everywhere, account);

  const std::string values = "event-reporters.cluster-event-reporter.";
  ASSERT_TRUE(helm("upgrade", ns_,
                   {"--set", values + "managedClusters=true", "--set", values + "replicaCount=2",
                    "--set-string", values + "config.workflow\\.namespaces=ci"})
                  .ok());
  auto with_workflows = everywhere;
  with_workflows.merge(watching({"workflows.argoproj.io"}));
  expect_granted("kube-system", with_workflows, account);
  auto own = here(everywhere, {"0", "1", "layout"});
  own.merge(std::set<std::string>{"list secrets", "watch secrets",
                                  "list leases.coordination.k8s.io",
                                  "create leases.coordination.k8s.io"});
  expect_granted(ns_, own, account);

  ASSERT_TRUE(helm("upgrade", ns_, {"--set", "global.runtime.singleNamespace=true"}).ok());
  expect_granted(ns_, here(everywhere, {"layout"}), account);
  expect_granted("kube-system", IsEmpty(), account);
}

TEST_F(ChartInstallTest, GrantsNamedSecretsOfClustersAndNoOther) {
  const std::string values = "event-reporters.cluster-event-reporter.";
  ASSERT_TRUE(helm("install", ns_,
                   {"--set", values + "managedClusters=true", "--set",
                    values + "clusterSecrets={cluster-a}"})
                  .ok());
  const std::string account = "cluster-event-reporter";
  const auto kubeconfig =
      cluster_->write_kubeconfig(ns_ + "-named", cluster_->service_account_token(ns_, account));
  const auto as_reporter = [&](const std::string& query) {
    return run_command({Helm::program("kubectl"), "--kubeconfig", kubeconfig, "get", "--raw",
                        "/api/v1/namespaces/" + ns_ + "/secrets" + query});
  };
  // The requests of the reporter: a list and a watch of one name.
  const std::string named =
      "?fieldSelector=metadata.name%3Dcluster-a&labelSelector=argocd.argoproj.io%2Fsecret-type%3D"
      "cluster";
  EXPECT_TRUE(wait_until([&] { return as_reporter(named).ok(); }, kTimeLimit,
                         "the list of one name", std::chrono::milliseconds(200)));
  const auto watched = as_reporter(named + "&watch=true&timeoutSeconds=1");
  EXPECT_TRUE(watched.ok()) << watched.err;
  for (const auto* other : {"", "?fieldSelector=metadata.name%3Dargocd-token",
                            "?labelSelector=argocd.argoproj.io%2Fsecret-type%3Dcluster"}) {
    const auto refused = as_reporter(other);
    EXPECT_FALSE(refused.ok()) << other;
    EXPECT_THAT(refused.err, HasSubstr("orbidden"));
  }
}

TEST_F(ChartInstallTest, NeedsNoSecretOfArgoCdToLogIn) {
  const auto installed =
      helm("install", ns_, {"--set", "global.integrations.argo-cd.server.auth.password=x"});
  ASSERT_TRUE(installed.ok()) << installed.err;
  expect_granted(
      ns_, AllOf(Contains("get applications.argoproj.io"), Not(Contains(HasSubstr("secrets")))));
  EXPECT_EQ(get(ns_, "secret", "gitops-runtime-argo-cd-password").at("/data/token"_json_pointer),
            "eA==");
}

TEST_F(ChartInstallTest, SwitchesToClaimsWithoutLosingPods) {
  // As docs/reference/chart.md says.
  ASSERT_TRUE(helm("install", ns_).ok());
  ASSERT_TRUE(ready(ns_, 1));
  const std::vector<std::string> claims{"--set", "global.event-reporters.persistence.enabled=true"};
  const auto refused = helm("upgrade", ns_, claims);
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(refused.err, HasSubstr("updates to statefulset spec"));

  cluster_->kubectl_ok({"-n", ns_, "delete", "statefulset", "runtime-event-reporter",
                        "cluster-event-reporter", "--cascade=orphan"});
  EXPECT_EQ(get(ns_, "pod", "runtime-event-reporter-0").at("kind"), "Pod");
  const auto upgraded = helm("upgrade", ns_, claims);
  ASSERT_TRUE(upgraded.ok()) << upgraded.err;
  EXPECT_TRUE(wait_until(
      [&] {
        return cluster_->kubectl({"-n", ns_, "get", "pvc", "ledger-runtime-event-reporter-0"})
                   .exit_code == 0;
      },
      kTimeLimit, "the claim", std::chrono::milliseconds(200)));
  const auto claim = get(ns_, "pvc", "ledger-runtime-event-reporter-0");
  EXPECT_EQ(claim.at("/spec/resources/requests/storage"_json_pointer), "1Gi");
  EXPECT_EQ(claim.at("/spec/accessModes"_json_pointer), json({"ReadWriteOnce"}));
}

TEST_F(ChartInstallTest, StaysInItsNamespaceWhenConfinedToIt) {
  ASSERT_TRUE(helm("install", ns_, {"--set", "global.runtime.singleNamespace=true"}).ok());
  std::set<std::string> expected{"get applications.argoproj.io", "list applications.argoproj.io",
                                 "watch applications.argoproj.io", "get configmaps/argocd-cm",
                                 "get secrets/argocd-token"};
  expected.merge(on_leases("event-reporter-app", {"layout"}));
  expect_granted(ns_, expected);
  expect_granted("kube-system", IsEmpty());
}

TEST_F(ChartInstallTest, SharesAClusterWithAnotherRuntime) {
  const auto other = make_namespace();
  ASSERT_TRUE(helm("install", ns_).ok());
  const auto second = helm("install", other);
  ASSERT_TRUE(second.ok()) << second.err;
  EXPECT_TRUE(ready(ns_, 1));
  EXPECT_TRUE(ready(other, 1));
}

// A chart that installs workloads with the names, labels and Services that an older chart gives them.
void write_older_chart(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "templates");
  write_file(folder / "Chart.yaml", "{apiVersion: v2, name: gitops-runtime, version: 0.30.0}");
  const auto workload = [](const std::string& kind, const std::string& name, const json& labels) {
    json one{{"apiVersion", "apps/v1"},
             {"kind", kind},
             {"metadata", {{"name", name}, {"labels", labels}}},
             {"spec",
              {{"replicas", 0},
               {"selector", {{"matchLabels", labels}}},
               {"template",
                {{"metadata", {{"labels", labels}}},
                 {"spec", {{"containers", {{{"name", "c"}, {"image", "older"}}}}}}}}}}};
    if (kind == "StatefulSet") one["spec"]["serviceName"] = name;
    return one;
  };
  const auto service = [](const std::string& name, const json& selector, int port) {
    return json{
        {"apiVersion", "v1"},
        {"kind", "Service"},
        {"metadata", {{"name", name}}},
        {"spec", {{"selector", selector}, {"ports", {{{"name", "http"}, {"port", port}}}}}}};
  };
  const json argocd{{"app.kubernetes.io/part-of", "argocd"}};
  std::vector<json> objects{
      workload("Deployment", "argo-cd-server", argocd),
      workload("StatefulSet", "argo-cd-application-controller", argocd),
      workload("Deployment", "gitops-operator", {{"app", "gitops-operator"}}),
      workload("Deployment", "cap-app-proxy", {{"app", "cap-app-proxy"}}),
      workload("Deployment", "internal-router", {{"app", "internal-router"}}),
      service("internal-router", {{"app", "internal-router"}}, 80),
      service("cap-app-proxy", {{"app", "cap-app-proxy"}}, 3017),
      // Up to 0.25.
      workload("StatefulSet", "event-reporter", {{"app.kubernetes.io/name", "event-reporter"}}),
      service("event-reporter", {{"app.kubernetes.io/name", "event-reporter"}}, 8088)};
  // Since 0.26.
  for (const std::string reporter : {"runtime-event-reporter", "cluster-event-reporter"}) {
    const json labels{{"app.kubernetes.io/name", reporter}};
    objects.push_back(workload("Deployment", reporter, labels));
    objects.push_back(service(reporter, labels, 8088));
  }
  std::string all;
  for (const auto& one : objects) all += "---\n" + one.dump() + "\n";
  write_file(folder / "templates/all.yaml", all);
}

TEST_F(ChartInstallTest, TakesOverAnOlderReleaseAndDeletesNothingUnasked) {
  TempDir folder;
  write_older_chart(folder.path());
  const auto older = helm_.run({"install", "rt", folder.path(), "-n", ns_, "--wait=false"},
                               cluster_->kubeconfig());
  ASSERT_TRUE(older.ok()) << older.err;
  const auto uid = [this](const std::string& kind, const std::string& name) {
    return get(ns_, kind, name).at("/metadata/uid"_json_pointer).get<std::string>();
  };
  const auto router = uid("deployment", "internal-router");
  const auto argo_cd = uid("deployment", "argo-cd-server");
  const auto address = [this](const std::string& name) {
    return get(ns_, "service", name).at("/spec/clusterIP"_json_pointer).get<std::string>();
  };
  const auto reporter_address = address("cluster-event-reporter");

  const auto refused = helm("upgrade", ns_);
  EXPECT_FALSE(refused.ok());
  for (const auto* lost :
       {"- Deployment argo-cd-server", "- Deployment cap-app-proxy", "- Deployment gitops-operator",
        "- StatefulSet argo-cd-application-controller"}) {
    EXPECT_THAT(refused.err, HasSubstr(lost));
  }
  EXPECT_THAT(refused.err, Not(HasSubstr("internal-router")));
  EXPECT_EQ(uid("deployment", "argo-cd-server"), argo_cd);
  EXPECT_EQ(uid("deployment", "cap-app-proxy").empty(), false);

  // As docs/guides/older-chart.md says: what is annotated stays; the rest is let go.
  cluster_->kubectl_ok({"-n", ns_, "annotate", "--overwrite", "deployments,statefulsets", "-l",
                        "app.kubernetes.io/part-of=argocd", "helm.sh/resource-policy=keep"});
  const auto less = helm("upgrade", ns_, {"--set", "app-proxy.enabled=true"});
  EXPECT_THAT(less.err, HasSubstr("- Deployment gitops-operator\nNothing"));
  const auto done = helm(
      "upgrade", ns_, {"--set", "app-proxy.enabled=true", "--set", "upgrade.acceptRemovals=true"});
  ASSERT_TRUE(done.ok()) << done.err;
  EXPECT_EQ(uid("deployment", "argo-cd-server"), argo_cd);
  EXPECT_EQ(uid("deployment", "internal-router"), router);
  EXPECT_EQ(address("cluster-event-reporter"), reporter_address);
  EXPECT_FALSE(cluster_->kubectl({"-n", ns_, "get", "deployment", "gitops-operator"}).ok());
  EXPECT_FALSE(cluster_->kubectl({"-n", ns_, "get", "statefulset", "event-reporter"}).ok());
  EXPECT_FALSE(cluster_->kubectl({"-n", ns_, "get", "deployment", "runtime-event-reporter"}).ok());
  EXPECT_TRUE(ready(ns_, 1));
  EXPECT_TRUE(ready(ns_, 1, "cluster-event-reporter"));

  // Own daemons may be switched off without being asked.
  const auto smaller = helm("upgrade", ns_, {"--set", "app-proxy.enabled=false"});
  EXPECT_TRUE(smaller.ok()) << smaller.err;
}

// The server knows every field of every object, and its values; with strict validation it refuses others.
TEST_F(ChartInstallTest, TheServerKnowsEveryFieldOfEveryObject) {
  cluster_->apply_crds("argo-events");
  // The pods of helm test are refused without their accounts, and nothing is made here.
  for (const std::string account : {"runtime-event-reporter", "cap-app-proxy"}) {
    cluster_->apply(R"({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ")" +
                    account + R"(", "namespace": ")" + ns_ + R"("}})");
  }
  const auto check = [&](const std::string& objects) {
    return cluster_->kubectl({"apply", "--dry-run=server", "--validate=strict", "-f", "-"},
                             objects);
  };
  const auto wrong = check(R"({"apiVersion": "v1", "kind": "Service",
    "metadata": {"name": "x", "namespace": ")" +
                           ns_ + R"("},
    "spec": {"ports": [{"port": 80, "prot": "TCP"}]}})");
  EXPECT_THAT(wrong.err, HasSubstr("unknown field \"spec.ports[0].prot\""));

  const json everything{
      {"global",
       {{"codefresh", {{"accountId", "0123456789abcdef01234567"}}},
        {"networkPolicy", {{"enabled", true}}},
        {"runtime", {{"gitCredentials", {{"password", {{"value", "x"}}}}}}},
        {"event-reporters", {{"replicaCount", 3}, {"persistence", {{"enabled", true}}}}}}},
      {"event-reporters", {{"cluster-event-reporter", {{"managedClusters", true}}}}},
      {"internal-router", {{"replicaCount", 2}, {"hpa", {{"enabled", true}}}}},
      {"app-proxy",
       {{"enabled", true},
        {"replicaCount", 2},
        {"actions", {{"enabled", true}}},
        {"image-enrichment", {{"enabled", true}}}}},
      {"tunnel-client", {{"tunnelServer", {{"subdomainHost", "t.example.com"}}}}},
      {"tunnel-server",
       {{"enabled", true},
        {"subdomainHost", "tunnels.example.com"},
        {"auth", {{"token", {{"secretKeyRef", {{"name", "t"}, {"key", "t"}}}}}}}}}};
  const json ingress{{"enabled", true}, {"className", "traefik"}, {"hosts", {"a.example.com"}}};
  const json confined{{"singleNamespace", true}, {"ingress", ingress}};
  const json argo_events{
      {"global", {{"networkPolicy", {{"enabled", true}}}}},
      {"event-reporters",
       {{"cluster-event-reporter",
         {{"form", "argo-events"}, {"argoEvents", {{"storageClassName", "fast"}}}}}}}};
  for (const auto& [name, values] :
       {std::pair("defaults", json::object()), std::pair("everything", everything),
        std::pair("confined", json{{"global", {{"runtime", confined}}}}),
        std::pair("argo-events", argo_events)}) {
    SCOPED_TRACE(name);
    TempDir folder;
    write_file(folder / "values.json", values.dump());
    const auto rendered = helm_.run({"template", "rt", chart_folder(), "-n", ns_, "-f",
                                     values_file("minimal.yaml"), "-f", folder / "values.json"});
    ASSERT_TRUE(rendered.ok()) << rendered.err;
    const auto checked = check(rendered.out);
    EXPECT_TRUE(checked.ok()) << checked.err;
    EXPECT_THAT(checked.err, Not(HasSubstr("PodSecurity")));
  }
}

TEST_F(ChartInstallTest, SaysWhichSecretsAreMissing) {
  cluster_->kubectl_ok({"-n", ns_, "delete", "secret", "argocd-token"});
  const auto installed = helm("install", ns_);
  ASSERT_TRUE(installed.ok()) << installed.err;
  EXPECT_THAT(installed.out, HasSubstr("Next step: create what is missing"));
  EXPECT_THAT(installed.out, HasSubstr("- Secret argocd-token, key token: an Argo CD API token"));
  EXPECT_THAT(installed.out, Not(HasSubstr("- Secret codefresh-token")));
  EXPECT_TRUE(ready(ns_, 1)) << "a missing Secret does not hold a pod";

  cluster_->kubectl_ok(
      {"-n", ns_, "create", "secret", "generic", "argocd-token", "--from-literal=token=x"});
  const auto upgraded = helm("upgrade", ns_);
  EXPECT_THAT(upgraded.out, Not(HasSubstr("Next step")));
}

TEST_F(ChartInstallTest, AC43_StoresHostileTextAsItIs) {
  const std::string text = "a\"b'c: {{ .Values }}\n---\nkind: Secret\n# &a *a";
  TempDir folder;
  const json values{{"global",
                     {{"httpProxy", "http://proxy:3128"},
                      {"noProxy", text},
                      {"event-reporters",
                       {{"config", {{"hostile", text}}},
                        {"podAnnotations", {{"hostile", text}}},
                        {"extraArgs", {"--x", text}}}}}},
                    {"internal-router", {{"config", {{"workflows-ca-file", text}}}}}};
  write_file(folder / "values.json", values.dump());
  const auto installed = helm("install", ns_, {"-f", folder / "values.json"});
  ASSERT_TRUE(installed.ok()) << installed.err;
  ASSERT_TRUE(ready(ns_, 1));
  ASSERT_TRUE(ready(ns_, 1, "cluster-event-reporter"));
  EXPECT_EQ(lines(cluster_->kubectl_ok(
                {"-n", ns_, "get", "secrets,pods", "-o", "name", "-l", "app!=internal-router"})),
            (std::set<std::string>{"pod/cluster-event-reporter-0", "pod/runtime-event-reporter-0",
                                   "secret/argocd-token", "secret/codefresh-token",
                                   "secret/sh.helm.release.v1.rt.v1"}));
  const auto pod = get(ns_, "pod", "runtime-event-reporter-0");
  EXPECT_EQ(pod.at("/metadata/annotations/hostile"_json_pointer), text);
  EXPECT_EQ(pod.at("/spec/containers/0/args"_json_pointer),
            json({"--codefresh-token-file", "/app/config/codefresh-token/token", "--x", text}));
  EXPECT_THAT(pod.at("/spec/containers/0/env"_json_pointer),
              Contains(ResultOf(
                  [](const json& one) {
                    return one.at("name") == "NO_PROXY" ? one.value("value", "") : "";
                  },
                  testing::StartsWith(text + ",localhost,"))));
  EXPECT_EQ(get(ns_, "configmap", "runtime-event-reporter-cmd-params-cm")
                .at("/data/hostile"_json_pointer),
            text);
  const auto routes = parse_manifests(
      get(ns_, "configmap", "internal-router-config").at("/data/routes.yaml"_json_pointer));
  ASSERT_TRUE(routes.has_value());
  EXPECT_EQ(routes->at(0).at("workflows-ca-file"), text);
}

}  // namespace
}  // namespace gitops::test
