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

// An ApplicationReporter beside doubles, without the queue and the watch that give it work.
struct ReporterAlone {
  explicit ReporterAlone(ReporterFixture& f, ChangeTracker::Options options = {})
      : fixture(f), changes(f.executor, ledger, reports, objects, options, f.metrics) {}

  Task<> start() {
    CO_ASSERT_OK(co_await ledger.open());
    ledger.start(tasks);
  }
  Task<> stop() {
    tasks.cancel();
    co_await tasks.join();
    co_await fixture.stop();
  }
  // The shard of the key is this process's from now on, as it was before its restart.
  void claim(const std::string& key) {
    const auto shard = changes.shard_of_key(key);
    ledger.set_note("term of shard " + std::to_string(shard), "1");
    changes.claimed(shard, 1);
  }
  std::string text_of(const SampleApp& app) {
    fixture.put(app);
    return fixture.kube.find(k8s::resources::kApplications, {app.ns, app.name})->dump();
  }

  ReporterFixture& fixture;
  k8s::Client kubernetes{
      fixture.executor, fixture.resolver, fixture.kube.cluster_config(), {}, "test"};
  http::Client http{fixture.executor, fixture.resolver, {}};
  Credential argocd_token = Credential::fixed(Secret("argocd.double.token"));
  Credential platform_token = Credential::fixed(Secret("platform-token"));
  argo::ArgoCdClient argocd{http, {.server = fixture.argocd.url(), .root_path = ""}, [this] {
                              return argocd_token.current();
                            }};
  control_plane::Client platform{http, fixture.platform.url(),
                                 [this] { return platform_token.current(); }};
  Gatherer gatherer{fixture.executor, kubernetes, argocd, argocd_token, "argocd", fixture.metrics};
  Ledger ledger{fixture.executor, {.path = {}, .commit_interval = {}}, fixture.metrics};
  Delivery delivery{fixture.executor, platform, platform_token, {}, fixture.metrics};
  ReportsDouble reports{fixture.executor};
  ObjectsDouble objects;
  ChangeTracker changes;
  ApplicationReporter reporter{fixture.executor, kubernetes, gatherer, ledger,
                               changes,          delivery,   {},       fixture.metrics};
  TaskGroup tasks{fixture.executor};
};

// The watch is behind what was read: its word about the one before does not end the one that is.
TEST(ReportOrder, ALateStateOfTheOneBeforeEndsNothing) {
  test::run_in_test_time([&]() -> Task<> {
    ReporterFixture fixture(co_await asio::this_coro::executor);
    co_await fixture.start_doubles();
    ReporterAlone alone(fixture);
    co_await alone.start();
    const std::string key = "argocd/web";
    alone.claim(key);
    const auto grant = *alone.changes.grant(key);
    const auto before = alone.text_of({.uid = "uid-1", .resources = 1});
    const auto now = alone.text_of({.uid = "uid-2", .resources = 1});
    auto& reporter = alone.reporter;
    CO_ASSERT_OK(co_await reporter.report_live({.key = key, .grant = grant, .text = now}));
    CO_ASSERT_OK(co_await reporter.report_live({.key = key, .grant = grant, .text = before}));
    CO_ASSERT_OK(co_await reporter.report_lost_parts(grant, key, before));
    EXPECT_THAT(fixture.events(), testing::ElementsAre("web", "c-0"));
    co_await alone.stop();
  });
}

// The report began while another replica, or this process before its restart, held the shard.
TEST(ReportOrder, ADeletionIsNotLeftToAnotherHolderOnceTheShardIsOurs) {
  test::run_in_test_time([&]() -> Task<> {
    ReporterFixture fixture(co_await asio::this_coro::executor);
    co_await fixture.start_doubles();
    ReporterAlone alone(fixture, {.replicas = 3});
    co_await alone.start();
    const std::string key = "argocd/web";
    const auto tombstone = alone.text_of({.uid = "uid-1", .resources = 1});
    LedgerEntry noted{.uid = "uid-1"};
    noted.note({.group = "", .version = "v1", .kind = "ConfigMap", .ns = "shop", .name = "c-0"});
    alone.ledger.store(key, noted);
    const auto grant = *alone.changes.grant(key);
    EXPECT_FALSE(grant.owner);
    alone.claim(key);
    EXPECT_FALSE(co_await alone.reporter.report_gone(grant, key, tombstone));
    EXPECT_TRUE(alone.ledger.known().contains(key));
    CO_ASSERT_OK(co_await alone.reporter.report_gone(*alone.changes.grant(key), key, tombstone));
    EXPECT_THAT(fixture.events(), testing::UnorderedElementsAre("web gone", "c-0 gone"));
    co_await alone.stop();
  });
}

// Its shard is released while it reports the first of two states.
class ReleasedMeanwhile final : public ObjectReporter {
 public:
  explicit ReleasedMeanwhile(ChangeTracker& changes) : changes_(changes) {}
  Task<Result<void>> report_gone(Grant, std::string, std::string) override {
    co_return Result<void>();
  }
  Task<Result<void>> report_predecessor(Grant, std::string, std::string) override {
    co_return Result<void>();
  }
  Task<Result<bool>> report_state(Grant grant, const std::string&, const DirtyWork&,
                                  const ReportAttempt&) override {
    changes_.released(grant.shard);
    co_return Result<bool>(true);
  }
  Task<Result<void>> report_missed(Grant, std::string, const DirtyWork&) override {
    co_return Result<void>();
  }

 private:
  ChangeTracker& changes_;
};

TEST(ReportOrder, StatesThatAreLeftWhenTheShardIsReleasedAreStillWork) {
  test::run_in_test_time([&]() -> Task<> {
    ReporterFixture fixture(co_await asio::this_coro::executor);
    co_await fixture.start_doubles();
    ReporterAlone alone(fixture, {.replicas = 3});
    co_await alone.start();
    const std::string key = "argocd/web";
    alone.claim(key);
    ReleasedMeanwhile reporter(alone.changes);
    DirtyWork work;
    work.live = true;
    work.states.push_back({.text = "1", .milestone = {}, .digest = {}});
    work.states.push_back({.text = "2", .milestone = {}, .digest = {}});
    const auto reported = co_await report_work(alone.changes, reporter, key, work, {});
    EXPECT_FALSE(reported);
    EXPECT_EQ(work.states.size(), 1U);
    co_await alone.stop();
  });
}

}  // namespace
}  // namespace gitops::reporter
