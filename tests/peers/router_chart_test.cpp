// The request-router as the chart installs it: into a real API server by the real helm, read back
// from there, and run as the node would run it.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "daemons/router_harness.hpp"
#include "peers/rendered_workload.hpp"
#include "peers/router_chart_bed.hpp"
#include "peers/shared_cluster.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(RouterChartTest, RoutesToWhatTheValuesName) {
  put_webhook_secret("s3cret");
  helm(values());
  start();

  const auto app = raw_call(router_->port(), RouterHarness::request("GET", "/app-proxy/api/x?y=1"));
  EXPECT_EQ(app.body, "app-proxy");
  EXPECT_EQ(app_proxy_.requests().back().target(), "/app-proxy/api/x?y=1");
  const auto ui =
      raw_call(router_->port(), RouterHarness::request("GET", "/workflows/api/v1/info"));
  EXPECT_EQ(ui.body, "workflows");
  EXPECT_EQ(workflows_.requests().back().target(), "/api/v1/info");

  const auto own = "/webhooks/" + ns_;
  EXPECT_EQ(post(own + "/github/push").body, "events");
  EXPECT_EQ(events_.requests().back().target(), own + "/github/push");
  EXPECT_EQ(post("/webhooks/kube-system/github").status, 403);
  // As NOTES promises.
  const auto unknown = post(own + "/unknown");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr("no such event source"));

  EXPECT_EQ(post(own + "/signed").status, 401);
  EXPECT_EQ(post(own + "/signed", "X-Gitlab-Token: s3cret\r\n").status, 200);

  // No right, no token, nothing secret at hand.
  EXPECT_THAT(pod_->kubeconfig().string(), ::testing::IsEmpty());
  EXPECT_EQ(pod_->environment().size(), 5U) << json(pod_->environment()).dump();
  router_->process().signal(SIGTERM);
  EXPECT_EQ(router_->process().wait(kTimeLimit), 0);
}

TEST_F(RouterChartTest, AnUpgradeReachesTheRunningRouterAndNoConnectionEnds) {
  put_webhook_secret("s3cret");
  helm(values());
  start();
  const auto pods_before = pods();
  ASSERT_THAT(pods_before, SizeIs(1));

  RawSocket idle(router_->port(), kTimeLimit);  // asks now and then
  const auto late = RouterHarness::request("POST", "/webhooks/late/github", {}, "{}");
  idle.send(late);
  EXPECT_EQ(idle.read_response().status, 403);
  RawSocket busy(router_->port(), kTimeLimit);  // in the middle of an answer
  busy.send(RouterHarness::request("GET", "/app-proxy/held"));
  busy.read_until("first");

  auto more = values();
  more["internal-router"]["webhooks"]["allowedNamespaces"] = {ns_, "late"};
  more["internal-router"]["webhooks"]["signatures"].push_back(
      {{"namespace", "late"}, {"eventSource", "signed"}, {"kind", "gitlab"}, {"key", "lab"}});
  more["internal-router"]["config"]["webhook-max-body"] = 16;
  helm(more);
  pod_->update_volumes();
  EXPECT_TRUE(wait_until(
      [&] {
        idle.send(late);
        return idle.read_response().body == "events";
      },
      kTimeLimit, "the new namespace, on the old connection"));
  EXPECT_EQ(post("/webhooks/late/signed").status, 401);
  EXPECT_EQ(raw_call(router_->port(), RouterHarness::request("POST", "/webhooks/late/github", {},
                                                             std::string(17, 'x')))
                .status,
            413);
  held_.go_on();
  EXPECT_THAT(busy.read_until("0\r\n\r\n"), HasSubstr("second"));

  EXPECT_THAT(metrics(), HasSubstr("\ngitops_router_reloads_total 1\n"));
  EXPECT_EQ(pods(), pods_before);
  EXPECT_EQ(get("deployment", "internal-router").at("/metadata/generation"_json_pointer), 1);

  // Another secret does the same way.
  const auto signed_webhook = "/webhooks/" + ns_ + "/signed";
  put_webhook_secret("rotated");
  pod_->update_volumes();
  EXPECT_TRUE(
      wait_until([&] { return post(signed_webhook, "X-Gitlab-Token: rotated\r\n").status == 200; },
                 kTimeLimit, "the new secret"));
  EXPECT_EQ(post(signed_webhook, "X-Gitlab-Token: s3cret\r\n").status, 401);
}

TEST_F(RouterChartTest, RoutesWithMistakesChangeNothing) {
  helm(values());
  start();
  cluster().kubectl_ok({"-n", ns_, "patch", "configmap", "internal-router-config", "--type=merge",
                        "-p", R"({"data":{"routes.yaml":"webhook-port: x\napp-proxy-url: y\n"}})"});
  pod_->update_volumes();
  EXPECT_TRUE(
      wait_until([&] { return metrics().contains("\ngitops_router_bad_reloads_total 1\n"); },
                 kTimeLimit, "the bad routes to be counted", milliseconds(100)));
  EXPECT_EQ(post("/webhooks/" + ns_ + "/github").body, "events");
  EXPECT_TRUE(wait_until([&] { return router_->log().contains("webhook-port"); }, kTimeLimit,
                         "the line about it"));
}

TEST_F(RouterChartTest, TheClusterTakesEveryWayInAndWhatKeepsItOpen) {
  cluster().apply(read_file(std::filesystem::path(GITOPS_SOURCE_DIR) /
                            "tests/peers/gateway-api/httproute-crd.yaml"));
  const auto path = "/apis/gateway.networking.k8s.io/v1/namespaces/" + ns_ + "/httproutes";
  require_until([&] { return cluster().request("GET", path).status == 200; }, kTimeLimit,
                "HTTPRoutes to be served");
  json values{{"global",
               {{"runtime",
                 {{"ingress",
                   {{"enabled", true},
                    {"hosts", {"a.example.com", "b.example.com"}},
                    {"tls", {{{"secretName", "cert"}, {"hosts", {"a.example.com"}}}}}}},
                  {"httpRoute",
                   {{"enabled", true},
                    {"hostnames", {"c.example.com"}},
                    {"parentRefs", {{{"name", "gateway"}, {"namespace", "infra"}}}}}}}}}},
              {"internal-router",
               {{"replicaCount", 2},
                {"service", {{"type", "NodePort"}, {"port", 8000}}},
                {"webhooks", {{"allowedNamespaces", {"argo", "ci"}}}},
                {"networkPolicy",
                 {{"enabled", true},
                  {"from", {{{"namespaceSelector", json::object()}}}},
                  {"metricsFrom", {{{"podSelector", json::object()}}}}}}}}};
  helm(values);
  const auto service = get("service", "internal-router");
  const auto port = service.at("/spec/ports/0/port"_json_pointer);
  EXPECT_EQ(port, 8000);
  EXPECT_EQ(service.at("/spec/ports"_json_pointer).size(), 1U);

  const auto ingress = get("ingress", "codefresh-gitops-runtime");
  for (const auto& rule : ingress.at("/spec/rules"_json_pointer)) {
    std::vector<std::string> paths;
    for (const auto& one : rule.at("/http/paths"_json_pointer)) {
      paths.push_back(one.at("path"));
      EXPECT_EQ(one.at("/backend/service"_json_pointer),
                json({{"name", "internal-router"}, {"port", {{"number", port}}}}));
    }
    EXPECT_THAT(paths, ElementsAre("/webhooks", "/app-proxy", "/workflows"));
  }
  const auto route = get("httproute", "codefresh-gitops-runtime").at("spec");
  EXPECT_EQ(route.at("hostnames"), json({"c.example.com"}));
  EXPECT_EQ(route.at("/parentRefs/0/namespace"_json_pointer), "infra");
  EXPECT_EQ(route.at("/rules/0/matches"_json_pointer).size(), 3U);
  EXPECT_EQ(route.at("/rules/0/backendRefs/0/port"_json_pointer), port);
  EXPECT_EQ(get("configmap", "codefresh-cm").at("/data/ingressHost"_json_pointer),
            "https://a.example.com");
  EXPECT_EQ(get("networkpolicy", "internal-router").at("/spec/ingress"_json_pointer).size(), 2U);

  // Two restricted pods run, one may be away, and the Service finds both.
  EXPECT_TRUE(wait_until(
      [&] {
        const auto slices = json::parse(
            cluster().kubectl_ok({"-n", ns_, "get", "endpointslices", "-l",
                                  "kubernetes.io/service-name=internal-router", "-o", "json"}));
        std::size_t ready = 0;
        for (const auto& slice : slices.at("items")) {
          for (const auto& endpoint : slice.value("endpoints", json::array())) {
            ready += endpoint.at("/conditions/ready"_json_pointer) == true ? 1 : 0;
          }
        }
        return ready == 2;
      },
      kTimeLimit, "two endpoints", milliseconds(200)));
  EXPECT_TRUE(wait_until(
      [&] {
        return get("pdb", "internal-router").value("/status/disruptionsAllowed"_json_pointer, 0) ==
               1;
      },
      kTimeLimit, "the budget to find both", milliseconds(200)));

  // The API server looks at what is written: a Gateway without a name is refused.
  values["global"]["runtime"]["httpRoute"]["parentRefs"] = {{{"namespace", "infra"}}};
  EXPECT_THAT(try_helm(values).err, HasSubstr("spec.parentRefs[0].name: Required value"));
  values["global"]["runtime"]["httpRoute"]["enabled"] = false;
  values["internal-router"]["hpa"] = {{"enabled", true}, {"minReplicas", 3}};
  helm(values);
  EXPECT_EQ(get("hpa", "internal-router").at("/spec/minReplicas"_json_pointer), 3);
  EXPECT_FALSE(cluster().kubectl({"-n", ns_, "get", "httproute", "codefresh-gitops-runtime"}).ok());
}

TEST_F(RouterChartTest, TakesThePlaceOfTheOlderChartsRouter) {
  // What the older chart leaves that cannot change: the Deployment's selector; and the Service's.
  write_file(folder_ / "older/Chart.yaml",
             "apiVersion: v2\nname: gitops-runtime\nversion: 0.0.1\n");
  write_file(folder_ / "older/templates/router.yaml",
             "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: internal-router}\nspec:\n"
             "  selector: {matchLabels: {app: internal-router}}\n"
             "  template:\n    metadata: {labels: {app: internal-router}}\n    spec:\n"
             "      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}\n"
             "      containers: [{name: router, image: example/nginx, "
             "ports: [{name: http, containerPort: 8080}], "
             "volumeMounts: [{name: config, mountPath: /etc/config}], "
             "securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]\n"
             "      volumes: [{name: config, configMap: {name: internal-router-config}}]\n---\n"
             "apiVersion: v1\nkind: Service\nmetadata: {name: internal-router}\nspec:\n"
             "  selector: {app: internal-router}\n"
             "  ports: [{name: http, port: 80, targetPort: http}]\n---\n"
             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: internal-router-config}\n"
             "data: {default.conf.template: x}\n");
  const auto older =
      helm_.run({"install", "rt", folder_ / "older", "-n", ns_}, cluster().kubeconfig());
  ASSERT_TRUE(older.ok()) << older.err;
  const auto uid = "/metadata/uid"_json_pointer;
  const auto deployment = get("deployment", "internal-router").at(uid);
  const auto address = get("service", "internal-router").at("/spec/clusterIP"_json_pointer);

  helm(values());
  start();
  EXPECT_EQ(get("deployment", "internal-router").at(uid), deployment);
  EXPECT_EQ(get("service", "internal-router").at("/spec/clusterIP"_json_pointer), address);
  const auto config = get("configmap", "internal-router-config").at("data");
  EXPECT_TRUE(config.contains("routes.yaml") && config.size() == 1) << config;
  EXPECT_EQ(post("/webhooks/" + ns_ + "/github").body, "events");
}

}  // namespace
}  // namespace gitops::test
