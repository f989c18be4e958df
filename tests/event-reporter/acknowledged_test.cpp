#include "event-reporter/acknowledged.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ResourceId kDeployment{"apps", "v1", "Deployment", "shop", "web"};
const ResourceId kService{"", "v1", "Service", "shop", "web"};

Digest digest(std::uint8_t value) {
  return Digest{value};
}

using Resources = std::vector<Report::Resource>;

Acknowledged::Difference diff(const Acknowledged& record, const Digest& application,
                              const Resources& resources, std::string_view uid = "u1") {
  return record.diff("ns/app", uid, application, std::span<const Report::Resource>(resources));
}

TEST(Acknowledged, EverythingIsDueAtFirst) {
  const Acknowledged record;
  const auto due = diff(record, digest(1), {{kDeployment, digest(2)}, {kService, digest(3)}});
  EXPECT_TRUE(due.application);
  EXPECT_THAT(due.changed, ElementsAre(0, 1));
  EXPECT_THAT(due.gone, IsEmpty());
}

TEST(Acknowledged, OnlyWhatChangedIsDueAgain) {
  Acknowledged record;
  record.commit_application("ns/app", "u1", digest(1));
  record.commit_resource("ns/app", "u1", kDeployment, digest(2));
  record.commit_resource("ns/app", "u1", kService, digest(3));
  const auto same = diff(record, digest(1), {{kDeployment, digest(2)}, {kService, digest(3)}});
  EXPECT_FALSE(same.application);
  EXPECT_THAT(same.changed, IsEmpty());
  EXPECT_THAT(same.gone, IsEmpty());

  const auto one = diff(record, digest(9), {{kService, digest(4)}, {kDeployment, digest(2)}});
  EXPECT_TRUE(one.application);
  EXPECT_THAT(one.changed, ElementsAre(0));
}

TEST(Acknowledged, WhatWasReportedDuringASyncIsDueOnceMoreAfterwards) {
  Acknowledged record;
  record.commit_resource("ns/app", "u1", kDeployment, digest(2));
  record.commit_resource("ns/app", "u1", kService, digest(3));
  // The sync changes one of the two.
  const Resources during{{kDeployment, digest(12), digest(2)}, {kService, digest(14), digest(4)}};
  EXPECT_THAT(diff(record, digest(1), during).changed, ElementsAre(1));
  record.commit_resource("ns/app", "u1", kService, digest(14));
  EXPECT_THAT(diff(record, digest(1), during).changed, IsEmpty());

  const Resources afterwards{{kDeployment, digest(2)}, {kService, digest(4)}};
  EXPECT_THAT(diff(record, digest(1), afterwards).changed, ElementsAre(1));
  record.commit_resource("ns/app", "u1", kService, digest(4));
  EXPECT_THAT(diff(record, digest(1), afterwards).changed, IsEmpty());
}

TEST(Acknowledged, AResourceThatIsMissingIsGoneUntilThatWasAcknowledged) {
  Acknowledged record;
  record.commit_resource("ns/app", "u1", kDeployment, digest(2));
  record.commit_resource("ns/app", "u1", kService, digest(3));
  EXPECT_THAT(diff(record, digest(1), {{kDeployment, digest(2)}}).gone, ElementsAre(kService));
  record.forget_resource("ns/app", "u1", kService);
  EXPECT_THAT(diff(record, digest(1), {{kDeployment, digest(2)}}).gone, IsEmpty());
}

TEST(Acknowledged, UnknownResourcesAreNeverTakenForGone) {
  Acknowledged record;
  record.commit_resource("ns/app", "u1", kService, digest(3));
  const auto due = record.diff("ns/app", "u1", digest(1), std::nullopt);
  EXPECT_THAT(due.gone, IsEmpty());
  EXPECT_THAT(due.changed, IsEmpty());
  EXPECT_TRUE(due.application);
}

TEST(Acknowledged, AnotherVersionOfTheSameObjectIsAChangeNotADeletion) {
  Acknowledged record;
  const ResourceId old{"batch", "v1beta1", "CronJob", "shop", "tick"};
  const ResourceId now{"batch", "v1", "CronJob", "shop", "tick"};
  record.commit_resource("ns/app", "u1", old, digest(2));
  const auto due = diff(record, digest(1), {{now, digest(5)}});
  EXPECT_THAT(due.changed, ElementsAre(0));
  EXPECT_THAT(due.gone, IsEmpty());
}

TEST(Acknowledged, AnApplicationMadeAnewStartsFromNothing) {
  Acknowledged record;
  record.commit_application("ns/app", "u1", digest(1));
  record.commit_resource("ns/app", "u1", kService, digest(3));
  const auto due = diff(record, digest(1), {{kService, digest(3)}}, "u2");
  EXPECT_TRUE(due.application);
  EXPECT_THAT(due.changed, ElementsAre(0));
  EXPECT_THAT(record.resources_of("ns/app", "u1"), ElementsAre(kService));
  record.commit_application("ns/app", "u2", digest(1));
  EXPECT_THAT(record.resources_of("ns/app", "u1"), IsEmpty());
  record.forget("ns/app", "u1");
  EXPECT_TRUE(record.knows("ns/app", "u2"));
  record.forget("ns/app", "u2");
  EXPECT_EQ(record.applications(), 0U);
}

}  // namespace
}  // namespace gitops::reporter
