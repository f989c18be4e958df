#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peers/reporter_bed.hpp"
#include "peers/reporter_scenes.hpp"
#include "support/run_coro.hpp"

// The event-reporter with Argo CD 2, whose Applications have the health of each resource, and which
// marks what it manages by labels.
namespace gitops::test {
namespace {

using namespace nlohmann::literals;

constexpr auto kRelease = ArgoCdRelease::v2_13;

struct EventReporterArgoCd2 : testing::Test {
  void SetUp() override {
    if (const auto lacking = ReporterBed::missing(kRelease)) {
      GTEST_SKIP() << "peers: " << *lacking;
    }
  }
};

TEST_F(EventReporterArgoCd2, TheApplicationHasTheHealthOfItsResources) {
  play(kRelease, [](ReporterBed& bed) -> Task<> {
    co_await bed.start();
    const auto app = bed.make_repository("healthy");
    const auto commit = co_await bed.commit(app, {{"web.yaml", deployment(2)}}, "web");
    co_await bed.create(app);
    co_await bed.sync(app, commit.id);
    CO_ASSERT_TRUE(co_await bed.settled(app, commit.id));
    const auto* root = co_await bed.last("Application", app.name);
    EXPECT_EQ(root->object.at("/status/resources/0/health/status"_json_pointer), "Healthy");
    const auto* web = co_await bed.last("Deployment", "web");
    CO_ASSERT_TRUE(web != nullptr);
    EXPECT_EQ(web->source("healthStatus"), "Healthy");
    EXPECT_EQ(web->source("trackingMethod"), "label");
  });
}

TEST_F(EventReporterArgoCd2, AnApplicationAndItsResourcesAreReported) {
  play(kRelease, reports_an_application_and_its_resources);
}

TEST_F(EventReporterArgoCd2, ACommitIsReported) {
  play(kRelease, reports_a_commit);
}

TEST_F(EventReporterArgoCd2, WhatIsRemovedIsReportedAsGone) {
  play(kRelease, reports_what_is_removed);
}

TEST_F(EventReporterArgoCd2, AnApplicationRemovedAloneIsReported) {
  play(kRelease, reports_an_application_removed_alone);
}

TEST_F(EventReporterArgoCd2, ArgoCdIsReadTwicePerEvent) {
  play(kRelease, reads_argocd_twice_per_event);
}

}  // namespace
}  // namespace gitops::test
