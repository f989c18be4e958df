#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scene.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"

namespace gitops::reporter {
namespace {

using nlohmann::json;

TEST(ReportOrder, AStateThatTheWatchTellsLateDoesNotComeBehindANewerOneOfAnObjectMadeAnew) {
  const test::LogCapture quiet;
  test::run_coro(
      [&]() -> Task<> {
        auto options = Scene::fast_options();
        options.reporter.sweep = std::chrono::milliseconds(50);
        Scene scene(co_await asio::this_coro::executor, options);
        co_await scene.start();
        const auto state = [](const std::string& uid, int content) {
          // Each another milestone, so that none is skipped for a newer one.
          return SampleApp{.uid = uid,
                           .sync_status = content % 2 == 0 ? "OutOfSync" : "Synced",
                           .resources = 1,
                           .content = content,
                           .metadata = {{"labels", {{"content", std::to_string(content)}}}}};
        };
        const auto wait_for = [&scene](std::string content) -> Task<bool> {
          co_return co_await scene.platform.wait_for(
              [&content](const test::FakePlatform::Report& report) {
                return report.object.value("/metadata/labels/content"_json_pointer, "") == content;
              },
              deadline_after(std::chrono::seconds(5))) != nullptr;
        };
        using namespace nlohmann::literals;
        scene.put(state("uid-1", 1));
        EXPECT_TRUE(co_await wait_for("1"));
        EXPECT_TRUE(co_await scene.is_quiet());

        // The watch is silent while it is made anew; a look at the resource tree finds that out.
        scene.kube.stall_watches(true);
        scene.remove({});
        scene.put(state("uid-2", 2));
        scene.put(state("uid-2", 3));
        auto tree = state("uid-2", 3).tree();
        tree["nodes"].push_back({{"kind", "Pod"}, {"namespace", "shop"}, {"name", "another"}});
        scene.argocd.set_tree("web", tree);
        EXPECT_TRUE(co_await wait_for("3"));
        const auto seen = scene.platform.reports().size();
        scene.kube.stall_watches(false);
        scene.put(state("uid-2", 4));
        EXPECT_TRUE(co_await wait_for("4"));
        EXPECT_TRUE(co_await scene.is_quiet());
        for (const auto* report : scene.platform.find("Application", "web", seen)) {
          EXPECT_NE(report->object.value("/metadata/labels/content"_json_pointer, ""), "2");
        }
        co_await scene.stop();
      },
      std::chrono::seconds(30));
  if (::testing::Test::HasFailure()) std::cerr << quiet.text() << "\n";
}

}  // namespace
}  // namespace gitops::reporter
