#include "event-reporter/report/difference.hpp"

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

using Resources = std::vector<ApplicationEvents::Resource>;

Difference due(const LedgerEntry& entry, const Digest& application, const Resources& resources,
               std::string_view uid = "u1") {
  return diff(entry, uid, application, std::span<const ApplicationEvents::Resource>(resources));
}

LedgerEntry sample() {
  LedgerEntry entry{.uid = "u1", .change = digest(7)};
  entry.acknowledge(digest(1));
  entry.acknowledge(kDeployment, digest(2));
  entry.acknowledge(kService, digest(3));
  return entry;
}

TEST(Difference, EverythingIsDueAtFirst) {
  const auto all = due({}, digest(1), {{kDeployment, digest(2)}, {kService, digest(3)}});
  EXPECT_TRUE(all.application);
  EXPECT_THAT(all.changed, ElementsAre(0, 1));
  EXPECT_THAT(all.gone, IsEmpty());
}

TEST(Difference, OnlyWhatChangedIsDueAgain) {
  const auto entry = sample();
  const auto same = due(entry, digest(1), {{kDeployment, digest(2)}, {kService, digest(3)}});
  EXPECT_FALSE(same.application);
  EXPECT_THAT(same.changed, IsEmpty());
  EXPECT_THAT(same.gone, IsEmpty());

  const auto one = due(entry, digest(9), {{kService, digest(4)}, {kDeployment, digest(2)}});
  EXPECT_TRUE(one.application);
  EXPECT_THAT(one.changed, ElementsAre(0));
}

TEST(Difference, WhatWasNotAcknowledgedIsDueAgain) {
  auto entry = sample();
  entry.announce(digest(1), 5);
  entry.announce(kService, digest(3), 5);
  const auto again = due(entry, digest(1), {{kDeployment, digest(2)}, {kService, digest(3)}});
  EXPECT_TRUE(again.application);
  EXPECT_THAT(again.changed, ElementsAre(1));
}

TEST(Difference, WhatWasRefusedWaitsUntilItIsTriedOnceMore) {
  auto entry = sample();
  entry.announce(digest(9), 5);
  entry.refuse(400, {}, "no");
  entry.announce(kService, kGone, 5);
  entry.refuse(kService, 400, {}, "no");
  const Resources left{{kDeployment, digest(2)}};
  const auto waits = due(entry, digest(9), left);
  EXPECT_FALSE(waits.application);
  EXPECT_THAT(waits.gone, IsEmpty());
  EXPECT_TRUE(due(entry, digest(8), left).application) << "another content";
  EXPECT_THAT(due(entry, digest(9), {{kDeployment, digest(2)}, {kService, digest(3)}}).changed,
              ElementsAre(1));
  const auto again = diff(entry, "u1", digest(9),
                          std::span<const ApplicationEvents::Resource>(left), Refused::retry);
  EXPECT_TRUE(again.application);
  EXPECT_THAT(again.gone, ElementsAre(kService));

  EXPECT_THAT(diff_gone(entry).gone, ElementsAre(kDeployment));
  EXPECT_TRUE(diff_gone(entry).application) << "its deletion was not refused";
  EXPECT_THAT(diff_gone(entry, Refused::retry).gone, ElementsAre(kService, kDeployment));
}

TEST(Difference, WhatWasReportedDuringASyncIsDueOnceMoreAfterwards) {
  auto entry = sample();
  // The sync changes one of the two.
  const Resources during{{kDeployment, digest(12), digest(2)}, {kService, digest(14), digest(4)}};
  EXPECT_THAT(due(entry, digest(1), during).changed, ElementsAre(1));
  entry.acknowledge(kService, digest(14));
  EXPECT_THAT(due(entry, digest(1), during).changed, IsEmpty());

  const Resources afterwards{{kDeployment, digest(2)}, {kService, digest(4)}};
  EXPECT_THAT(due(entry, digest(1), afterwards).changed, ElementsAre(1));
  entry.acknowledge(kService, digest(4));
  EXPECT_THAT(due(entry, digest(1), afterwards).changed, IsEmpty());
}

TEST(Difference, AResourceThatIsMissingIsGoneUntilThatWasAcknowledged) {
  auto entry = sample();
  EXPECT_THAT(due(entry, digest(1), {{kDeployment, digest(2)}}).gone, ElementsAre(kService));
  entry.forget(kService);
  EXPECT_THAT(due(entry, digest(1), {{kDeployment, digest(2)}}).gone, IsEmpty());
}

TEST(Difference, UnknownResourcesAreNeverTakenForGone) {
  const auto unknown = diff(sample(), "u1", digest(9), std::nullopt);
  EXPECT_THAT(unknown.gone, IsEmpty());
  EXPECT_THAT(unknown.changed, IsEmpty());
  EXPECT_TRUE(unknown.application);
}

TEST(Difference, AnotherVersionOfTheSameObjectIsAChangeNotADeletion) {
  LedgerEntry entry{.uid = "u1"};
  const ResourceId old{"batch", "v1beta1", "CronJob", "shop", "tick"};
  const ResourceId now{"batch", "v1", "CronJob", "shop", "tick"};
  entry.acknowledge(old, digest(2));
  const auto changed = due(entry, digest(1), {{now, digest(5)}});
  EXPECT_THAT(changed.changed, ElementsAre(0));
  EXPECT_THAT(changed.gone, IsEmpty());
}

TEST(Difference, AnApplicationRecreatedStartsFromNothing) {
  auto entry = sample();
  const auto remade = due(entry, digest(1), {{kService, digest(3)}}, "u2");
  EXPECT_TRUE(remade.application);
  EXPECT_THAT(remade.changed, ElementsAre(0));
  EXPECT_THAT(remade.gone, IsEmpty());
}

}  // namespace
}  // namespace gitops::reporter
