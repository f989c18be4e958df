#pragma once

#include <chrono>
#include <future>
#include <iostream>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "daemons/router_harness.hpp"
#include "peers/rendered_workload.hpp"
#include "peers/shared_cluster.hpp"

// The router, run from what is installed in the cluster.
namespace gitops::test {

inline constexpr auto kTimeLimit = std::chrono::seconds(60);
inline constexpr const char* kSecret = "internal-router-webhook-secrets";

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
    ns_ = "door-" + std::to_string(++number);
    cluster().create_namespace(ns_, {{"pod-security.kubernetes.io/enforce", "restricted"},
                                     {"pod-security.kubernetes.io/warn", "restricted"}});
  }
  void TearDown() override {
    if (HasFailure() && router_) std::cerr << router_->log();
  }

  static PeerCluster& cluster() { return shared_cluster(); }

  // helm upgrade --install with the minimal values and these.
  CommandResult try_helm(const nlohmann::json& values) {
    write_file(folder_ / "values.json", values.dump());
    return helm_.run({"upgrade", "--install", "rt", chart_folder(), "-n", ns_, "-f",
                      values_file("minimal.yaml"), "-f", (folder_ / "values.json").string()},
                     cluster().kubeconfig());
  }
  void helm(const nlohmann::json& values) {
    const auto done = try_helm(values);
    if (!done.ok()) throw std::runtime_error("helm: " + done.err);
    EXPECT_THAT(done.err, testing::Not(testing::HasSubstr("arning")));
  }
  nlohmann::json get(const std::string& kind, const std::string& name) const {
    return nlohmann::json::parse(
        cluster().kubectl_ok({"-n", ns_, "get", kind, name, "-o", "json"}));
  }
  // Names of the router's pods that are not about to go.
  std::set<std::string> pods() const {
    const auto all = nlohmann::json::parse(cluster().kubectl_ok(
        {"-n", ns_, "get", "pods", "-l", "app=internal-router", "-o", "json"}));
    std::set<std::string> names;
    for (const auto& pod : all.at("items")) {
      const auto& metadata = pod.at("metadata");
      if (!metadata.contains("deletionTimestamp")) names.insert(metadata.at("name"));
    }
    return names;
  }
  void put_webhook_secret(const std::string& text) const {
    const nlohmann::json secret{{"apiVersion", "v1"},
                                {"kind", "Secret"},
                                {"metadata", {{"name", kSecret}, {"namespace", ns_}}},
                                {"stringData", {{"lab", text}}}};
    cluster().apply(secret.dump());
  }

  // The values of an installation whose upstreams are these; the pod's network is not as a
  // customer has it.
  nlohmann::json values() const {
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

}  // namespace gitops::test
