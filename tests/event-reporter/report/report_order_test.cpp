#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/client.hpp"
#include "event-reporter/report/reporter_fixture.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "tracker_doubles.hpp"

namespace gitops::reporter {
namespace {

using nlohmann::json;

TEST(ReportOrder, AStateThatTheWatchTellsLateDoesNotComeBehindANewerOneOfAnObjectRecreated) {
  const test::LogCapture quiet;
  test::run_in_test_time([&]() -> Task<> {
    auto options = ReporterFixture::fast_options();
    options.reporter.sweep = std::chrono::milliseconds(50);
    ReporterFixture fixture(co_await asio::this_coro::executor, options);
    co_await fixture.start();
    const auto state = [](const std::string& uid, int content) {
      // Each another milestone, so that none is skipped for a newer one.
      return SampleApp{.uid = uid,
                       .sync_status = content % 2 == 0 ? "OutOfSync" : "Synced",
                       .resources = 1,
                       .content = content,
                       .metadata = {{"labels", {{"content", std::to_string(content)}}}}};
    };
    const auto wait_for = [&fixture](std::string content) -> Task<bool> {
      co_return co_await fixture.platform.wait_for(
          [&content](const test::FakePlatform::Report& report) {
            return report.object.value("/metadata/labels/content"_json_pointer, "") == content;
          },
          deadline_after(std::chrono::seconds(5))) != nullptr;
    };
    using namespace nlohmann::literals;
    fixture.put(state("uid-1", 1));
    EXPECT_TRUE(co_await wait_for("1"));
    EXPECT_TRUE(co_await fixture.is_quiet());

    // The watch is silent while it is recreated; a look at the resource tree finds that out.
    fixture.kube.stall_watches(true);
    fixture.remove({});
    fixture.put(state("uid-2", 2));
    fixture.put(state("uid-2", 3));
    auto tree = state("uid-2", 3).tree();
    tree["nodes"].push_back({{"kind", "Pod"}, {"namespace", "shop"}, {"name", "another"}});
    fixture.argocd.set_tree("web", tree);
    EXPECT_TRUE(co_await wait_for("3"));
    const auto seen = fixture.platform.reports().size();
    fixture.kube.stall_watches(false);
    fixture.put(state("uid-2", 4));
    EXPECT_TRUE(co_await wait_for("4"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    for (const auto* report : fixture.platform.find("Application", "web", seen)) {
      EXPECT_NE(report->object.value("/metadata/labels/content"_json_pointer, ""), "2");
    }
    co_await fixture.stop();
  });
  if (::testing::Test::HasFailure()) std::cerr << quiet.text() << "\n";
}

// The watch is behind what was read: its word about the one before does not end the one that is.
TEST(ReportOrder, ALateStateOfTheOneBeforeEndsNothing) {
  test::run_in_test_time([&]() -> Task<> {
    ReporterFixture fixture(co_await asio::this_coro::executor);
    co_await fixture.start_doubles();
    const auto& with = fixture.executor;
    k8s::Client kubernetes(with, fixture.resolver, fixture.kube.cluster_config(), {}, "test");
    http::Client http(with, fixture.resolver, {});
    auto argocd_token = Credential::fixed(Secret("argocd.double.token"));
    auto platform_token = Credential::fixed(Secret("platform-token"));
    argo::ArgoCdClient argocd(http, {.server = fixture.argocd.url(), .root_path = ""},
                              [&] { return argocd_token.current(); });
    control_plane::Client platform(http, fixture.platform.url(),
                                   [&] { return platform_token.current(); });
    Gatherer gatherer(with, kubernetes, argocd, argocd_token, "argocd", fixture.metrics);
    Ledger ledger(with, {.path = {}, .commit_interval = {}}, fixture.metrics);
    Delivery delivery(with, platform, platform_token, {}, fixture.metrics);
    ReportsDouble reports(with);
    ObjectsDouble objects;
    ChangeTracker changes(with, ledger, reports, objects, {}, fixture.metrics);
    ApplicationReporter reporter(with, kubernetes, gatherer, ledger, changes, delivery, {},
                                 fixture.metrics);
    TaskGroup tasks(with);
    CO_ASSERT_OK(co_await ledger.open());
    ledger.start(tasks);

    const auto text_of = [&](const SampleApp& app) {
      fixture.put(app);
      return fixture.kube.find(k8s::resources::kApplications, {app.ns, app.name})->dump();
    };
    const std::string key = "argocd/web";
    ledger.set_note("term of shard 0", "1");
    changes.claimed(0, 1);
    const auto grant = *changes.grant(key);
    const auto before = text_of({.uid = "uid-1", .resources = 1});
    const auto now = text_of({.uid = "uid-2", .resources = 1});
    CO_ASSERT_OK(co_await reporter.report_live({.key = key, .grant = grant, .text = now}));
    CO_ASSERT_OK(co_await reporter.report_live({.key = key, .grant = grant, .text = before}));
    CO_ASSERT_OK(co_await reporter.report_lost_parts(grant, key, before));
    EXPECT_THAT(fixture.events(), testing::ElementsAre("web", "c-0"));
    tasks.cancel();
    co_await tasks.join();
    co_await fixture.stop();
  });
}

}  // namespace
}  // namespace gitops::reporter
