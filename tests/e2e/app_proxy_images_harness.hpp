#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <zlib.h>

#include "common/core/task_group.hpp"
#include "common/http/sse.hpp"
#include "doubles/fake_kube_api.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "e2e/control_plane_side.hpp"
#include "k8s-client/resource.hpp"

// app-proxy with the Workflows that an image report starts.
namespace gitops::test {

using namespace std::chrono_literals;

inline constexpr auto kBob = AppProxyHarness::kBob;

inline std::string deflated(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                      reinterpret_cast<const Bytef*>(text.data()), text.size(), 9),
            Z_OK);
  out.resize(size);
  return percent_encode(base64_encode(out));
}

// argo-server, as far as the logs of a Workflow's tasks are concerned.
struct ArgoServer {
  explicit ArgoServer(const Executor& executor)
      : server(executor, {.address = "127.0.0.1"},
               [this](http::Exchange& exchange) { return serve(exchange); }) {
    EXPECT_TRUE(server.listen());
  }
  Task<> serve(http::Exchange& exchange) {
    const std::string path(exchange.path());
    if (!path.ends_with("/log")) {
      (void)co_await exchange.reply({.status = 200,
                                     .headers = {{"Content-Type", "application/json"}},
                                     .body = R"({"metadata":{"name":"w","namespace":"default"}})"});
      co_return;
    }
    ++asked;
    (void)co_await exchange.start({.status = 200});
    for (const char* content : {"starting image reporter", "image reported successfully"}) {
      (void)co_await exchange.write(
          nlohmann::json{{"result", {{"content", content}, {"podName", "report-1"}}}}.dump() +
          "\n");
    }
    (void)co_await exchange.finish();
  }

  int asked = 0;
  http::Server server;
};

struct ImagesHarness {
  explicit ImagesHarness(const Executor& executor, ControlPlaneKind kind)
      : base(executor), side(kind, base.platform), cluster(executor), argo(executor) {
    base.platform.accounts().add(
        {.id = "acc-1", .name = "acme", .admins = {"u-ann"}, .git_provider = "GITHUB"});
    EXPECT_TRUE(cluster.start());
    cluster.add_type(k8s::resources::kWorkflows);
    write_file(folder / "kubeconfig", cluster.kubeconfig());
  }
  Task<> start(Environment more = {}) {
    more.insert({{"KUBECONFIG", (folder / "kubeconfig").string()},
                 {"NAMESPACE", "default"},
                 {"IRW_HEARTBEAT_INTERVAL_IN_SECONDS", "1"},
                 {"IRW_SERVICE_ACCOUNT", "reporter"},
                 {"RUNTIME_STORE_IV", "canary-iv"}});
    more.merge(side.environment());
    base.start(std::move(more));
    co_await base.account_known();
  }
  // An integration as applyIntegration, Argo CD and Sealed Secrets leave it in the cluster.
  void put_integration(const std::string& name, const char* type, const nlohmann::json& info,
                       const std::map<std::string, std::string>& credentials) {
    nlohmann::json metadata{{"name", "codefresh-integration-" + name},
                            {"namespace", "default"},
                            {"labels", {{"io.codefresh.integration-type", type}}}};
    cluster.put(
        k8s::resources::kConfigMaps,
        {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", metadata}, {"data", info}});
    nlohmann::json data = nlohmann::json::object();
    for (const auto& [key, value] : credentials) data[key] = base64_encode(value);
    cluster.put(k8s::resources::kSecrets,
                {{"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", metadata}, {"data", data}});
  }
  // What the tasks of the only report get.
  [[nodiscard]] std::map<std::string, std::string> task_environment() const {
    std::map<std::string, std::string> values;
    for (const nlohmann::json& secret : objects(k8s::resources::kSecrets)) {
      for (const auto& [key, value] : secret["data"].items()) {
        values[key] = base64_decode(value.get<std::string>()).value_or("?");
      }
    }
    return values;
  }
  Task<AppProxyHarness::Answer> report(std::string query,
                                       http::Headers headers = {{"authorization", kBob}}) {
    co_return co_await base.send(
        {.method = "GET",
         .target = "/app-proxy/api/image-report" + (query.empty() ? "" : "?" + query),
         .headers = std::move(headers)});
  }
  static std::vector<http::ServerSentEvent> events_of(const AppProxyHarness::Answer& answer) {
    http::ServerSentEventParser parser(1024 * 1024);
    auto events = parser.feed(answer.body);
    EXPECT_TRUE(events);
    return events ? std::move(*events) : std::vector<http::ServerSentEvent>();
  }
  [[nodiscard]] std::vector<nlohmann::json> objects(const k8s::Resource& resource) const {
    std::vector<nlohmann::json> found;
    const auto* type = cluster.store().find_type(resource.group, resource.version, resource.plural);
    for (const auto& object : cluster.store().list(*type, "default")) {
      if (object->json["metadata"]["name"].get<std::string>().starts_with("image-report-")) {
        found.push_back(object->json);
      }
    }
    return found;
  }
  // Gives the first Workflow this status when its Secret is there, too.
  Task<> set_status(nlohmann::json status) {
    const auto deadline = deadline_after(30s);
    while (objects(k8s::resources::kSecrets).empty() && Clock::now() < deadline) {
      co_await sleep_for(20ms);
    }
    auto workflows = objects(k8s::resources::kWorkflows);
    CO_ASSERT_EQ(workflows.size(), 1U);
    workflows[0]["status"] = std::move(status);
    cluster.put(k8s::resources::kWorkflows, workflows[0]);
  }

  [[nodiscard]] std::string logs() const { return base.logs() + side.logs(); }
  Task<> stop() {
    co_await base.stop();
    side.stop();
    co_await argo.server.stop(Clock::now());
    co_await cluster.stop();
  }

  AppProxyHarness base;
  ControlPlaneSide side;
  FakeKubeApi cluster;
  ArgoServer argo;
  TempDir folder;
};

inline void in_images_harness(ControlPlaneKind kind,
                              const std::function<Task<>(ImagesHarness&)>& body) {
  run_coro(
      [&]() -> Task<> {
        ImagesHarness harness(co_await asio::this_coro::executor, kind);
        co_await play_in(harness, body);
      },
      std::chrono::seconds(60));
}
inline void in_images_harness(const std::function<Task<>(ImagesHarness&)>& body) {
  in_images_harness(ControlPlaneKind::fake, body);
}

}  // namespace gitops::test
