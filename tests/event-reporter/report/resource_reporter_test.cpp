#include "event-reporter/report/resource_reporter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/control_plane/events.hpp"
#include "common/core/credential.hpp"
#include "common/net/resolve.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"

namespace gitops::reporter {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
namespace r = k8s::resources;

// The reporter's parts with doubles around them, all on the loop of one test.
struct Parts {
  explicit Parts(const Executor& executor) : kube(executor), platform_double(executor) {
    kube.add_type(r::kRollouts);
  }
  Task<> start(ResourceReporter::Options options) {
    CO_ASSERT_OK(kube.start());
    CO_ASSERT_OK(platform_double.start());
    const auto executor = co_await asio::this_coro::executor;
    client.emplace(executor, resolver, kube.cluster_config(), http::ProxySettings{}, "test");
    http.emplace(executor, resolver, http::ClientOptions{});
    token.emplace(Credential::fixed(Secret("platform-token")));
    platform.emplace(*http, platform_double.url(), [this] { return token->current(); });
    ledger.emplace(executor, Ledger::Options{}, metrics);
    Delivery::Options delivery_options;
    delivery_options.backoff = {.initial = milliseconds(5), .max = milliseconds(20)};
    delivery_options.breaker.pauses = {.initial = milliseconds(5), .max = milliseconds(50)};
    delivery.emplace(executor, *platform, *token, delivery_options, metrics);
    options.own_namespace = "argocd";
    options.kinds = {find_kind("rollouts")};
    options.queue.backoff = {.initial = milliseconds(5), .max = milliseconds(50)};
    options.watch.reflector.backoff = {.initial = milliseconds(5), .max = milliseconds(50)};
    reporter.emplace(executor, *client, *ledger, *delivery, std::move(options), metrics);
    CO_ASSERT_OK(co_await ledger->open());
    ledger->start(tasks.emplace(executor));
    reporter->start(*tasks);
    reporter->changes().claimed(0, 0);
  }
  Task<> stop() {
    reporter->stop();
    tasks->cancel();
    co_await tasks->join();
    co_await platform_double.stop();
    co_await kube.stop();
  }

  void put(const std::string& uid, const std::string& phase) {
    kube.put(r::kRollouts, {{"metadata", {{"name", "web"}, {"namespace", "shop"}, {"uid", uid}}},
                            {"status", {{"phase", phase}}}});
  }
  // "uid phase" or "uid gone".
  [[nodiscard]] std::vector<std::string> events() const {
    std::vector<std::string> out;
    for (const auto& report : platform_double.reports()) {
      out.push_back(report.object["metadata"]["uid"].get<std::string>() + " " +
                    (report.data.value("deleted", false)
                         ? "gone"
                         : report.object["status"]["phase"].get<std::string>()));
    }
    return out;
  }
  Task<bool> wait_for(std::string event) {
    co_return co_await platform_double.wait_for(
        [&](const test::FakePlatform::Report&) { return events().back() == event; },
        deadline_after(seconds(10))) != nullptr;
  }

  Metrics metrics;
  test::FakeKubeApi kube;
  test::FakePlatform platform_double;
  net::Resolver resolver{metrics};
  std::optional<k8s::Client> client;
  std::optional<http::Client> http;
  std::optional<Credential> token;
  std::optional<control_plane::Client> platform;
  std::optional<Ledger> ledger;
  std::optional<Delivery> delivery;
  std::optional<ResourceReporter> reporter;
  std::optional<TaskGroup> tasks;
};

void play(ResourceReporter::Options options, const std::function<Task<>(Parts&)>& body) {
  const test::LogCapture quiet;
  test::run_in_test_time(
      [&]() -> Task<> {
        Parts parts(co_await asio::this_coro::executor);
        co_await parts.start(options);
        co_await body(parts);
        co_await parts.stop();
        EXPECT_THAT(parts.platform_double.refused(), IsEmpty());
      },
      seconds(30));
  if (::testing::Test::HasFailure()) std::cerr << quiet.text() << "\n";
}

TEST(ResourceReporter, EveryPhaseIsReportedInOrder) {
  play({}, [](Parts& parts) -> Task<> {
    parts.put("u", "first");
    EXPECT_TRUE(co_await parts.wait_for("u first"));
    for (const auto* phase : {"one", "two", "three"}) parts.put("u", phase);
    EXPECT_TRUE(co_await parts.wait_for("u three"));
    EXPECT_THAT(parts.events(), ElementsAre("u first", "u one", "u two", "u three"));
  });
}

TEST(ResourceReporter, WhatWasReadBeforeTheWatchToldOfItIsNeitherOvertakenNorTakenForGone) {
  ResourceReporter::Options options;
  options.queue.dirty.bytes = 1;  // no text is kept: each is read when it is reported
  play(options, [](Parts& parts) -> Task<> {
    parts.put("old", "one");
    EXPECT_TRUE(co_await parts.wait_for("old one"));
    co_await parts.platform_double.stop();
    parts.put("old", "two");
    while (parts.delivery->trouble().empty()) co_await sleep_for(milliseconds(5));
    // While its report waits, it is made anew, and the watch is silent.
    parts.kube.stall_watches(true);
    EXPECT_TRUE(parts.kube.remove(r::kRollouts, {"shop", "web"}));
    parts.put("new", "three");
    parts.put("new", "four");
    // An attempt that began before is over.
    const auto reads = parts.kube.count("GET");
    while (parts.kube.count("GET") < reads + 2) co_await sleep_for(milliseconds(5));
    CO_ASSERT_OK(parts.platform_double.start());
    EXPECT_TRUE(co_await parts.wait_for("new four"));
    parts.kube.stall_watches(false);
    parts.put("new", "five");
    EXPECT_TRUE(co_await parts.wait_for("new five"));
    EXPECT_TRUE(co_await parts.platform_double.wait_until_quiet(milliseconds(200),
                                                                deadline_after(seconds(5))));
    EXPECT_THAT(parts.events(),
                ElementsAre("old one", "old gone", "new four", "old gone", "new five"));
  });
}

TEST(ResourceReporter, WhatCameAndWentBehindADeletionThatNobodySawIsReportedAsGoneWithIt) {
  play({}, [](Parts& parts) -> Task<> {
    parts.ledger->store("in-cluster/rollouts/shop/web", {.uid = "oldest"});
    co_await parts.platform_double.stop();
    parts.put("u", "one");
    while (parts.delivery->trouble().empty()) co_await sleep_for(milliseconds(5));
    EXPECT_TRUE(parts.kube.remove(r::kRollouts, {"shop", "web"}));
    while (parts.reporter->status().find("rollouts: 0 objects") == std::string::npos) {
      co_await sleep_for(milliseconds(5));
    }
    CO_ASSERT_OK(parts.platform_double.start());
    EXPECT_TRUE(co_await parts.wait_for("u gone"));
    while (!parts.ledger->known().empty()) co_await sleep_for(milliseconds(5));
    EXPECT_THAT(parts.events(), AnyOf(ElementsAre("oldest gone", "u gone"),
                                      ElementsAre("oldest gone", "u one", "u gone")));
  });
}

TEST(ResourceReporter, ASignOfLifeComesWhenThereIsNothingToReport) {
  ResourceReporter::Options options;
  options.queue.heartbeat = milliseconds(1500);
  play(options, [](Parts& parts) -> Task<> {
    parts.put("u", "one");
    EXPECT_TRUE(co_await parts.platform_double.wait_for_count(2, deadline_after(seconds(8))));
    EXPECT_THAT(parts.events(), ElementsAre("u one", "u one"));
  });
}

// By a replica that is no more.
TEST(ResourceReporter, WhatAnotherReplicaReportedIsReportedGone) {
  const auto row = [](const auto* uid) {
    return inventory_row("in-cluster/rollouts/shop/web", uid);
  };
  play({}, [row](Parts& parts) -> Task<> {
    parts.ledger->store(row("other"), {.uid = "other"});
    EXPECT_TRUE(co_await parts.wait_for("other gone"));
    while (!parts.ledger->inventory().empty()) co_await sleep_for(milliseconds(5));
  });
  play({}, [row](Parts& parts) -> Task<> {
    parts.ledger->store(row("other"), {.uid = "other"});
    parts.put("u", "one");
    EXPECT_TRUE(co_await parts.wait_for("u one"));
    EXPECT_THAT(parts.events(), ElementsAre("other gone", "u one"));
    while (!parts.ledger->inventory().empty()) co_await sleep_for(milliseconds(5));
  });
}

// Otherwise the watch of one namespace overwrites what that of another one shows.
TEST(ResourceReporter, EachNamespaceOfAManagedClusterHasMetricsOfItsOwn) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Parts parts(executor);
    co_await parts.start({});
    const auto client = std::make_shared<k8s::Client>(
        executor, parts.resolver, parts.kube.cluster_config(), http::ProxySettings{}, "test");
    parts.reporter->watch_cluster({.server = "https://prod.example.com",
                                   .name = "prod",
                                   .client = client,
                                   .namespaces = {"shop", "team"}});
    parts.put("uid-1", "Healthy");
    const auto shows = [&](const std::string& label, int objects) {
      return parts.metrics.expose().contains("watch_objects{cluster=\"" + label +
                                             "\",resource=\"rollouts\"} " +
                                             std::to_string(objects));
    };
    const auto deadline = deadline_after(seconds(5));
    while (!shows("prod/shop", 1) && Clock::now() < deadline) co_await sleep_for(milliseconds(5));
    EXPECT_TRUE(shows("prod/shop", 1)) << parts.metrics.expose();
    EXPECT_TRUE(shows("prod/team", 0));
    EXPECT_TRUE(shows("in-cluster", 1));
    co_await parts.stop();
  });
}

}  // namespace
}  // namespace gitops::reporter
