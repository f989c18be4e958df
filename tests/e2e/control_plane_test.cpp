// The event-reporter and the real control plane, between doubles of Kubernetes and Argo CD: what happens to an Application
// is what the control plane shows. app-proxy with the real control plane: the suites app_proxy_*_test.cpp.
#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemons/control_plane_bed.hpp"
#include "e2e/reporter_harness.hpp"
#include "support/count_of.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

// The Application "shop" as a user sees it; null when there is none.
Json shop_of(const ControlPlaneBed& bed) {
  return bed.ask(
      "{application(runtime: \"prod\", name: \"shop\", namespace: \"argocd\") "
      "{syncStatus healthStatus status {revision commitAuthor}}}",
      Json::object(), kBobKey);
}

TEST(ControlPlane, ShowsWhatTheEventReporterReports) {
  run_coro(
      []() -> Task<> {
        ControlPlaneBed bed;
        ReporterHarness harness(co_await asio::this_coro::executor);
        co_await harness.start_doubles();
        write_file(harness.folder / "platform-token", kProdToken);
        harness.put_app("shop", 1);
        harness.start_daemon(
            {{"CODEFRESH_URL", bed.url()}, {"CODEFRESH_SSL_CERT_PATH", bed.ca_file().string()}});
        const auto shows = [&](const std::string& revision, const std::string& status) {
          const auto shop = shop_of(bed);
          return shop.is_object() && shop["status"]["revision"] == revision &&
                 shop["syncStatus"] == status;
        };
        CO_ASSERT_TRUE(co_await eventually([&] { return shows("r1", "SYNCED"); },
                                           "the Application at the control plane"))
            << harness.logs() << bed.program().log();
        EXPECT_EQ(shop_of(bed)["healthStatus"], "HEALTHY");
        EXPECT_EQ(shop_of(bed)["status"]["commitAuthor"], "a");

        harness.put_app("shop", 2, {.sync_status = "OutOfSync", .revision = "r2"});
        CO_ASSERT_TRUE(co_await eventually([&] { return shows("r2", "OUT_OF_SYNC"); },
                                           "the change at the control plane"))
            << harness.logs();

        harness.kube.remove(k8s::resources::kApplications, {"argocd", "shop"});
        CO_ASSERT_TRUE(co_await eventually([&] { return shop_of(bed).is_null(); },
                                           "the deletion at the control plane"))
            << harness.logs();
        co_await harness.stop();
        EXPECT_EQ(bed.program().stop(), 0);
      },
      std::chrono::seconds(120));
}

// A runtime that is registered again has another token, and its older one is refused. No change is lost meanwhile.
TEST(ControlPlane, TakesTheEventsThatWaitedForANewToken) {
  run_coro(
      []() -> Task<> {
        ControlPlaneBed bed;
        ReporterHarness harness(co_await asio::this_coro::executor);
        co_await harness.start_doubles();
        write_file(harness.folder / "platform-token", kProdToken);
        harness.put_app("shop", 1);
        harness.start_daemon(
            {{"CODEFRESH_URL", bed.url()}, {"CODEFRESH_SSL_CERT_PATH", bed.ca_file().string()}});
        const auto shows = [&](const char* revision) {
          return [&bed, revision] {
            const auto shop = shop_of(bed);
            return shop.is_object() && shop["status"]["revision"] == revision;
          };
        };
        CO_ASSERT_TRUE(co_await eventually(shows("r1"), "the Application")) << harness.logs();
        const auto token = bed.program().register_runtime(kAnnKey, "prod");
        EXPECT_EQ(bed.runtime_of(kProdToken), "");
        harness.put_app("shop", 2, {.sync_status = "OutOfSync", .revision = "r2"});
        CO_ASSERT_TRUE(co_await harness.daemon->wait_for_log("401"));
        EXPECT_TRUE(shows("r1")());
        write_file(harness.folder / "platform-token", token);
        CO_ASSERT_TRUE(co_await eventually(shows("r2"), "the change, by the new token"))
            << harness.logs();
        co_await harness.stop();
        EXPECT_EQ(bed.program().stop(), 0);
      },
      std::chrono::seconds(120));
}

// The highest sequence of each object in the journal of "shop".
std::map<std::string, std::int64_t> journal_of(const ControlPlaneBed& bed) {
  std::map<std::string, std::int64_t> newest;
  const auto journal = bed.ask(
      "{applicationJournal(runtime: \"prod\", namespace: \"argocd\", name: \"shop\", pagination: "
      "{first: 100}){edges{node{sequence object{kind name}}}}}",
      Json::object(), kAnnKey);
  if (!journal.is_object()) return newest;
  for (const Json& edge : journal["edges"]) {
    const Json& node = edge["node"];
    if (!node["sequence"].is_string() || !node["object"].is_object()) continue;
    auto& last = newest[node["object"]["kind"].get<std::string>() + " " +
                        node["object"]["name"].get<std::string>()];
    last = std::max<std::int64_t>(last, std::stoll(node["sequence"].get<std::string>()));
  }
  return newest;
}

// The way of a request: from a user by the control plane and the answer to a sign of life to the event-reporter, and
// back as events. Nothing changes in the cluster.
TEST(ControlPlane, AnApplicationIsReportedAgainOnRequest) {
  run_coro(
      []() -> Task<> {
        ControlPlaneBed bed;
        ReporterHarness harness(co_await asio::this_coro::executor);
        co_await harness.start_doubles();
        write_file(harness.folder / "platform-token", kProdToken);
        harness.put_app("shop", 1);
        harness.put_app("cart", 1);
        harness.start_daemon({{"CODEFRESH_URL", bed.url()},
                              {"CODEFRESH_SSL_CERT_PATH", bed.ca_file().string()},
                              {"HEARTBEAT_INTERVAL", "1s"}});
        CO_ASSERT_TRUE(co_await eventually([&] { return journal_of(bed).size() == 2; },
                                           "the Application and its ConfigMap"))
            << harness.logs() << bed.program().log();
        const auto before = journal_of(bed);
        const auto ask = [&] {
          return bed.ask(
              "mutation{reportApplicationAgain(runtime: \"prod\", namespace: \"argocd\", name: "
              "\"shop\"){state}}",
              Json::object(), kAnnKey)["state"];
        };
        EXPECT_EQ(ask(), "REQUESTED");
        const std::string served = "asks for the events of an object again";
        CO_ASSERT_TRUE(co_await eventually(
            [&] {
              const auto now = journal_of(bed);
              return std::ranges::all_of(
                  before, [&](const auto& one) { return now.at(one.first) > one.second; });
            },
            "newer events of both"))
            << harness.logs();
        // The request has ended, so another one is a new one.
        EXPECT_EQ(ask(), "REQUESTED");
        EXPECT_TRUE(co_await harness.daemon->wait_for_log(served, 2));
        co_await harness.stop();
        EXPECT_EQ(count_of(harness.daemon->log(), served), 2U) << "each once, though told often";
        EXPECT_EQ(bed.program().stop(), 0);
      },
      std::chrono::seconds(120));
}

}  // namespace
}  // namespace gitops::test
