// A control plane whose database went back in time asks for everything again, and for what exists.
#include "event-reporter/report/resync.hpp"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event-reporter/report/play_reporter.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr const char* kToken = "e-9";

http::Response answer_with(const Json& again) {
  return {.headers = {{"Content-Type", "application/json"}}, .body = Json{{"again", again}}.dump()};
}

// Two Applications with two resources each, and an acknowledged deletion.
Task<> report_all(ReporterFixture& fixture) {
  co_await fixture.start();
  const SampleApp ghost{.name = "ghost", .uid = "uid-ghost", .resources = 0};
  fixture.put(ghost);
  for (const auto* name : {"cart", "web"}) {
    fixture.put({.name = name, .uid = std::string("uid-") + name, .resources = 2});
  }
  CO_ASSERT_TRUE(co_await fixture.wait_for_events(7));
  fixture.remove(ghost);
  CO_ASSERT_TRUE(co_await fixture.wait_for_events(8));
  EXPECT_TRUE(co_await fixture.is_quiet());
}

// Makes the control plane ask with the answer to one event.
void ask(ReporterFixture& fixture) {
  fixture.platform.acknowledge_with("e:9", kToken);
  fixture.put({.name = "web", .uid = "uid-web", .revision = "r2", .resources = 2});
}

Task<bool> told(ReporterFixture& fixture, std::size_t count) {
  co_return co_await test::eventually(
      [&fixture, count] { return fixture.platform.inventories().size() >= count; },
      "the inventory");
}

// The newest sequence of each object, by the Application of a resource and the name.
std::map<std::string, std::uint64_t> newest(const ReporterFixture& fixture, std::size_t first,
                                            std::size_t end) {
  std::map<std::string, std::uint64_t> found;
  for (std::size_t i = first; i < end; ++i) {
    const auto& report = fixture.platform.reports()[i];
    auto& sequence = found[report.source("appName") + "/" + report.name()];
    sequence = std::max(sequence, report.sequence);
  }
  return found;
}

TEST(Resync, EverythingIsReportedAgainWithNewSequences) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_all(fixture);
    const auto before = newest(fixture, 0, 8);
    ask(fixture);
    CO_ASSERT_TRUE(co_await told(fixture, 1));
    EXPECT_TRUE(co_await fixture.is_quiet());
    const auto after = newest(fixture, 8, fixture.platform.reports().size());
    std::vector<std::string> again;
    for (const auto& [object, sequence] : after) {
      again.push_back(object);
      EXPECT_GT(sequence, before.at(object)) << object;
    }
    EXPECT_THAT(
        again, UnorderedElementsAre("/cart", "/web", "cart/c-0", "cart/c-1", "web/c-0", "web/c-1"));
    EXPECT_EQ(fixture.metric("gitops_event_reporter_resyncs_total"), 1);
    const auto count = fixture.platform.reports().size();
    fixture.put({.name = "web", .uid = "uid-web", .revision = "r3", .resources = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(count + 1));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.inventories().size(), 1U) << "the same token again";
  });
}

// It has no event whose acknowledgement could tell it, and the control plane shows what is gone.
TEST(Resync, AReporterWithoutAnObjectAsks) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await fixture.start();
    fixture.platform.acknowledge_with("e:9", "");
    const SampleApp ghost{.name = "ghost", .uid = "uid-ghost", .resources = 0};
    fixture.put(ghost);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(1));
    fixture.remove(ghost);
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(2));
    fixture.platform.acknowledge_with("e:3", kToken);
    co_await sleep_for(std::chrono::minutes(11));
    CO_ASSERT_TRUE(co_await told(fixture, 1));
    EXPECT_EQ(fixture.platform.inventories().front()["objects"], Json::object());
    EXPECT_TRUE(co_await test::eventually(
        [&] { return fixture.metric("gitops_event_reporter_resyncs_total") == 1; }, "its end"));
    EXPECT_EQ(fixture.platform.reports().size(), 2U);
  });
}

TEST(Resync, TheInventoryHasWhatExists) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_all(fixture);
    ask(fixture);
    CO_ASSERT_TRUE(co_await told(fixture, 1));
    const auto& inventory = fixture.platform.inventories().front();
    EXPECT_EQ(inventory["token"], kToken);
    EXPECT_EQ(inventory["mode"], "app");
    EXPECT_EQ(inventory["shards"], Json::array({0}));
    EXPECT_EQ(inventory["replicas"], 1);
    const auto digest =
        control_plane::resources_digest({"/ConfigMap/shop/c-0", "/ConfigMap/shop/c-1"});
    EXPECT_EQ(inventory["objects"], (Json{{"uid-cart", digest}, {"uid-web", digest}}));
    // The deletion that was lost is older, and every event from now on is newer.
    const auto sequence = inventory["sequence"].get<std::uint64_t>();
    EXPECT_GT(sequence, newest(fixture, 0, 8).at("/ghost"));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_GE(fixture.platform.reports().back().sequence, sequence);
  });
}

TEST(Resync, TheResourcesThatAreAskedForAreTold) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_all(fixture);
    fixture.platform.answer_inventories([](const Json& inventory) {
      return answer_with(inventory.contains("objects") ? Json::array({"uid-web", "uid-gone"})
                                                       : Json::array());
    });
    ask(fixture);
    CO_ASSERT_TRUE(co_await told(fixture, 2));
    const auto& parts = fixture.platform.inventories()[1];
    EXPECT_EQ(parts["resources"],
              (Json{{"uid-web", Json::array({"/ConfigMap/shop/c-0", "/ConfigMap/shop/c-1"})}}));
    EXPECT_EQ(parts["last"], true);
    EXPECT_TRUE(co_await test::eventually(
        [&] { return fixture.metric("gitops_event_reporter_resyncs_total") == 1; }, "its end"));
  });
}

// The shard is lost for a moment, as while the API server does not answer. The deletion of what this process
// reported is told all the same, and its acknowledgement asks.
TEST(Resync, WithoutAShardNothingIsToldAndTheNextClaimReportsEverything) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_all(fixture);
    const auto before = newest(fixture, 0, 8);
    fixture.reporter().changes().released(0);
    fixture.platform.acknowledge_with("e:9", kToken);
    fixture.remove({.name = "cart", .uid = "uid-cart", .resources = 2});
    CO_ASSERT_TRUE(co_await fixture.wait_for_events(11));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_THAT(fixture.platform.inventories(), IsEmpty());
    fixture.reporter().changes().claimed(0, fixture.options.term);
    CO_ASSERT_TRUE(co_await told(fixture, 1));
    EXPECT_TRUE(co_await fixture.is_quiet());
    const auto& inventory = fixture.platform.inventories().front();
    EXPECT_EQ(inventory["shards"], Json::array({0}));
    EXPECT_TRUE(inventory["objects"].contains("uid-web"));
    const auto after = newest(fixture, 11, fixture.platform.reports().size());
    for (const auto* object : {"/web", "web/c-0", "web/c-1"}) {
      CO_ASSERT_TRUE(after.contains(object)) << object;
      EXPECT_GT(after.at(object), before.at(object)) << object;
    }
  });
}

// spec.valuesObject is nested deeper than any reader of ours goes, so the Application never has an event.
TEST(Resync, AnApplicationThatCannotBeReadHoldsUpNoInventory) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_all(fixture);
    Json deep = 1;
    for (int i = 0; i < 1'100; ++i) {
      Json next = Json::object();
      next["d"] = std::move(deep);
      deep = std::move(next);
    }
    auto application = SampleApp{.name = "deep", .uid = "uid-deep", .resources = 0}.application();
    application["spec"]["deep"] = std::move(deep);
    fixture.kube.put(k8s::resources::kApplications, application);
    ask(fixture);
    CO_ASSERT_TRUE(co_await told(fixture, 1));
    EXPECT_TRUE(fixture.platform.inventories().front()["objects"].contains("uid-web"));
  });
}

TEST(Resync, AnInventoryThatIsNotTakenIsToldAgain) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_all(fixture);
    int answers = 0;
    fixture.platform.answer_inventories([&](const Json&) -> http::Response {
      if (++answers == 1) return {.status = 503};
      if (answers == 2) return {.headers = {{"Content-Type", "text/html"}}, .body = "<html>"};
      if (answers == 3) return {.body = "{}"};
      return answer_with(Json::array());
    });
    ask(fixture);
    CO_ASSERT_TRUE(co_await told(fixture, 4));
    EXPECT_TRUE(co_await test::eventually(
        [&] { return fixture.metric("gitops_event_reporter_resyncs_total") == 1; }, "its end"));
  });
}

// An ingress answers while the control plane starts. The token is that of one resync, so nobody asks again.
TEST(Resync, AnAnswerInPlaceOfTheControlPlanesIsNoRefusalOfTheInventory) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_all(fixture);
    int answers = 0;
    fixture.platform.answer_inventories([&](const Json&) -> http::Response {
      if (++answers == 1) {
        return {.status = 404,
                .headers = {{"Content-Type", "text/plain"}},
                .body = "default backend - 404"};
      }
      if (answers == 2) return {.status = 405};
      return answer_with(Json::array());
    });
    ask(fixture);
    CO_ASSERT_TRUE(co_await told(fixture, 3));
    EXPECT_TRUE(co_await test::eventually(
        [&] { return fixture.metric("gitops_event_reporter_resyncs_total") == 1; }, "its end"));
  });
}

// As of a proxy in between, for the size of the body.
TEST(Resync, ARefusalOfTheInventoryMayBeThatOfAnotherServer) {
  for (const int status : {400, 413, 422}) {
    play([status](ReporterFixture& fixture) -> Task<> {
      co_await report_all(fixture);
      int answers = 0;
      fixture.platform.answer_inventories([&answers, status](const Json&) {
        return ++answers == 1 ? http::Response{.status = status} : answer_with(Json::array());
      });
      ask(fixture);
      CO_ASSERT_TRUE(co_await told(fixture, 1));
      co_await sleep_for(std::chrono::minutes(6));
      CO_ASSERT_TRUE(co_await told(fixture, 2));
      EXPECT_TRUE(co_await test::eventually(
          [&] { return fixture.metric("gitops_event_reporter_resyncs_total") == 1; }, "its end"));
    });
  }
}

TEST(Resync, AnInventoryThatIsNotAskedForIsGivenUp) {
  play([](ReporterFixture& fixture) -> Task<> {
    co_await report_all(fixture);
    fixture.platform.answer_inventories([](const Json&) { return http::Response{.status = 409}; });
    ask(fixture);
    CO_ASSERT_TRUE(co_await told(fixture, 1));
    EXPECT_TRUE(co_await fixture.is_quiet());
    EXPECT_EQ(fixture.platform.inventories().size(), 1U);
    EXPECT_EQ(fixture.metric("gitops_event_reporter_resyncs_total"), 0);
    EXPECT_THAT(newest(fixture, 8, fixture.platform.reports().size()), testing::SizeIs(6));
  });
}

}  // namespace
}  // namespace gitops::reporter
