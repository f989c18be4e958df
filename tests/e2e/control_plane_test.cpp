// Our programs and the real control plane, between doubles of Kubernetes and Argo CD: app-proxy registers the runtime, and
// what happens to an Application is what the control plane shows.
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemons/app_proxy_process.hpp"
#include "daemons/control_plane_process.hpp"
#include "doubles/fake_argocd_server.hpp"
#include "e2e/reporter_harness.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

// The Application "shop" as a user sees it; null when there is none.
Json shop_of(const ControlPlaneProcess& program, const std::string& key) {
  const auto reply =
      program.graphql(key,
                      "{application(runtime: \"prod\", name: \"shop\", namespace: \"argocd\") "
                      "{syncStatus healthStatus status {revision commitAuthor}}}");
  const auto json = Json::parse(reply.body, nullptr, false);
  return json.is_object() ? json.value("/data/application"_json_pointer, Json()) : Json();
}

TEST(ControlPlane, ShowsWhatTheEventReporterReports) {
  run_coro(
      []() -> Task<> {
        ControlPlaneProcess program;
        program.add_account("acme");
        program.add_user("ann", "acme", {"--admin"});
        const auto key = program.create_key("ann", "acme");
        program.start();
        ReporterHarness world(co_await asio::this_coro::executor);
        co_await world.start_doubles();
        write_file(world.folder / "platform-token", program.register_runtime(key, "prod"));
        world.put_app("shop", 1);
        world.start_daemon({{"CODEFRESH_URL", program.url()}});
        const auto shows = [&](const std::string& revision, const std::string& status) {
          const auto shop = shop_of(program, key);
          return shop.is_object() && shop["status"]["revision"] == revision &&
                 shop["syncStatus"] == status;
        };
        CO_ASSERT_TRUE(co_await eventually([&] { return shows("r1", "SYNCED"); },
                                           "the Application at the control plane"))
            << world.logs() << program.log();
        EXPECT_EQ(shop_of(program, key)["healthStatus"], "HEALTHY");
        EXPECT_EQ(shop_of(program, key)["status"]["commitAuthor"], "a");

        world.put_app("shop", 2, {.sync_status = "OutOfSync", .revision = "r2"});
        CO_ASSERT_TRUE(co_await eventually([&] { return shows("r2", "OUT_OF_SYNC"); },
                                           "the change at the control plane"))
            << world.logs();

        world.kube.remove(k8s::resources::kApplications, {"argocd", "shop"});
        CO_ASSERT_TRUE(co_await eventually([&] { return shop_of(program, key).is_null(); },
                                           "the deletion at the control plane"))
            << world.logs();
        co_await world.stop();
        EXPECT_EQ(program.stop(), 0);
      },
      std::chrono::seconds(120));
}

TEST(ControlPlane, AppProxyRegistersItsRuntime) {
  run_coro(
      []() -> Task<> {
        ControlPlaneProcess program;
        program.add_account("acme");
        program.add_user("ann", "acme", {"--admin"});
        const auto key = program.create_key("ann", "acme");
        program.start();
        const auto executor = co_await asio::this_coro::executor;
        FakeKubeApi cluster(executor);
        FakeArgoCdServer argocd(executor);
        CO_ASSERT_OK(cluster.start());
        CO_ASSERT_OK(argocd.start());
        argocd.lists_clusters = false;
        TempDir folder;
        write_file(folder / "kubeconfig", cluster.kubeconfig());
        AppProxyProcess proxy(
            {{"CF_HOST", program.url()},
             {"KUBECONFIG", (folder / "kubeconfig").string()},
             {"NAMESPACE", "default"},
             {"RUNTIME_NAME", "new"},
             {"RUNTIME_TOKEN", ""},
             {"USER_TOKEN", key},
             {"CHART_VERSION", "0.30.1"},
             {"RUNTIME_VERSION", "0.1.72"},
             {"INGRESS_HOST", "https://runtime.example.test"},
             {"LEADER_ID", "pod-a"},
             {"ARGO_CD_URL", "http://127.0.0.1:" + std::to_string(argocd.url().port)},
             {"ARGO_CD_USERNAME", "admin"},
             {"ARGO_CD_PASSWORD", "canary-password"}});
        CO_ASSERT_TRUE(co_await eventually(
            [&] {
              const auto status = proxy.status();
              return status.state("registration") == "ok" &&
                     status.state("status at the control plane") == "ok" &&
                     status.state("account") == "ok";
            },
            "the registration"))
            << proxy.log() << program.log();
        EXPECT_TRUE(
            cluster.find(k8s::resources::kSecrets, {"default", "codefresh-token"}).has_value());
        const auto reply = program.graphql(
            key,
            "{runtime(name: \"new\") {metadata {name namespace} ingressHost runtimeVersion "
            "installationType status {eventReporterArgoCDToken {status} syncMode argoCdState}}}");
        const auto runtime = Json::parse(reply.body, nullptr, false)
                                 .value("/data/runtime"_json_pointer, Json::object());
        EXPECT_EQ(runtime["ingressHost"], "https://runtime.example.test") << reply.body;
        EXPECT_EQ(runtime["metadata"]["namespace"], "default");
        EXPECT_EQ(runtime["installationType"], "HELM");
        EXPECT_EQ(runtime["status"]["syncMode"], "HELM");
        EXPECT_EQ(runtime["status"]["argoCdState"], "CONNECTED");
        EXPECT_EQ(runtime["status"]["eventReporterArgoCDToken"]["status"], "SUCCESSFUL");
        EXPECT_EQ(proxy.process().stop(std::chrono::seconds(20)), 0);
        co_await argocd.stop();
        co_await cluster.stop();
        EXPECT_EQ(program.stop(), 0);
      },
      std::chrono::seconds(120));
}

}  // namespace
}  // namespace gitops::test
