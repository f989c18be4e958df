#include <chrono>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "daemons/router_harness.hpp"
#include "peers/rendered_workload.hpp"
#include "peers/shared_cluster.hpp"
#include "support/wait.hpp"

// The request-router as the chart installs it: into a real API server by the real helm, read back
// from there, and run as the node would run it.
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

constexpr auto kTimeLimit = std::chrono::seconds(60);
constexpr const char* kSecret = "internal-router-webhook-secrets";

// A body of two parts, the second one when the test says so.
class HeldAnswer {
 public:
  bool send(const RecordedRequest& request, RawSocket& socket) {
    if (request.target() != "/app-proxy/held") return RecordingUpstream::reply(socket, "app-proxy");
    socket.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    if (rest_.get_future().wait_for(kTimeLimit) != std::future_status::ready) return false;
    return socket.send("6\r\nsecond\r\n0\r\n\r\n");
  }
  void go_on() { rest_.set_value(); }

 private:
  std::promise<void> rest_;
};

class RouterChartTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
    if (const auto lacking = PeerCluster::missing()) GTEST_SKIP() << "peers: " << *lacking;
    static int number = 0;
    ns_ = "router-" + std::to_string(++number);
    cluster().create_namespace(ns_, {{"pod-security.kubernetes.io/enforce", "restricted"},
                                     {"pod-security.kubernetes.io/warn", "restricted"}});
  }
  void TearDown() override {
    if (HasFailure() && router_) std::cerr << router_->log();
  }

  static PeerCluster& cluster() { return shared_cluster(); }

  // helm upgrade --install with the minimal values and these.
  CommandResult try_helm(const json& values) {
    write_file(folder_ / "values.json", values.dump());
    return helm_.run({"upgrade", "--install", "rt", chart_folder(), "-n", ns_, "-f",
                      values_file("minimal.yaml"), "-f", (folder_ / "values.json").string()},
                     cluster().kubeconfig());
  }
  void helm(const json& values) {
    const auto done = try_helm(values);
    if (!done.ok()) throw std::runtime_error("helm: " + done.err);
    EXPECT_THAT(done.err, Not(HasSubstr("arning")));
  }
  json get(const std::string& kind, const std::string& name) const {
    return json::parse(cluster().kubectl_ok({"-n", ns_, "get", kind, name, "-o", "json"}));
  }
  // Names of the router's pods that are not about to go.
  std::set<std::string> pods() const {
    const auto all = json::parse(cluster().kubectl_ok(
        {"-n", ns_, "get", "pods", "-l", "app=internal-router", "-o", "json"}));
    std::set<std::string> names;
    for (const auto& pod : all.at("items")) {
      const auto& metadata = pod.at("metadata");
      if (!metadata.contains("deletionTimestamp")) names.insert(metadata.at("name"));
    }
    return names;
  }
  void put_webhook_secret(const std::string& text) const {
    const json secret{{"apiVersion", "v1"},
                      {"kind", "Secret"},
                      {"metadata", {{"name", kSecret}, {"namespace", ns_}}},
                      {"stringData", {{"lab", text}}}};
    cluster().apply(secret.dump());
  }

  // The values of an installation whose upstreams are these; the pod's network is not as a
  // customer has it.
  json values() const {
    const auto url = [](const RecordingUpstream& upstream) {
      return "http://127.0.0.1:" + std::to_string(upstream.port());
    };
    return {{"internal-router",
             {{"routing",
               {{"app-proxy", {{"internalUrl", url(app_proxy_)}}},
                {"workflows", {{"internalUrl", url(workflows_)}}}}},
              {"webhooks",
               {{"signatures",
                 {{{"namespace", ns_},
                   {"eventSource", "signed"},
                   {"kind", "gitlab"},
                   {"key", "lab"}}}}}},
              {"config",
               {{"webhook-port", events_.port()}, {"upstream-allowed-addresses", {"127.0.0.0/8"}}}},
              {"env", {{"METRICS_LISTEN_ADDRESS", "127.0.0.1"}}},
              {"terminationGracePeriodSeconds", 5}}}};
  }
  // Runs the program of the pod that the Deployment's controller made.
  void start() {
    pod_ = std::make_unique<RenderedWorkload>(cluster(), ns_,
                                              RenderedWorkload::Deployment{"internal-router"});
    auto argv = pod_->argv();
    argv[0] = std::string(GITOPS_BIN_DIR) + "/" + argv[0];
    std::string hosts;
    for (const std::string& source :
         {"github-eventsource-svc." + ns_, "signed-eventsource-svc." + ns_,
          std::string("github-eventsource-svc.late")}) {
      hosts += "127.0.0.1 " + source + ".svc.cluster.local\n";
    }
    router_ = std::make_unique<RouterProcess>(std::move(argv), pod_->process_environment(), hosts);
  }
  RawResponse post(const std::string& target, const std::string& more = {}) const {
    return raw_call(router_->port(), RouterHarness::request("POST", target, more, "{}"));
  }
  std::string metrics() const {
    return http_call(
               {.url = "http://127.0.0.1:" + std::to_string(router_->admin_port()) + "/metrics"})
        .body;
  }

  HeldAnswer held_;
  RecordingUpstream app_proxy_{"app-proxy", [this](const auto& request, auto& socket) {
                                 return held_.send(request, socket);
                               }};
  RecordingUpstream workflows_{"workflows"};
  RecordingUpstream events_{"events"};
  TempDir folder_;
  Helm helm_;
  std::string ns_;
  std::unique_ptr<RenderedWorkload> pod_;
  std::unique_ptr<RouterProcess> router_;
};

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
