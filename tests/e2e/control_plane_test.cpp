// The real event-reporter and the real control plane, between doubles of Kubernetes and Argo CD: what happens to an
// Application is what the control plane shows.
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemons/control_plane_process.hpp"
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

}  // namespace
}  // namespace gitops::test
