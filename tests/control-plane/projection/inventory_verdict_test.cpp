#include "control-plane/projection/inventory_verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control-plane/projection/fold.hpp"

namespace gitops::control_plane_server {
namespace {

using control_plane::Inventory;
using control_plane::resources_digest;
using control_plane::shard_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kSequence = 1'000;

InventoryRow app(const std::string& name, std::int64_t sequence = 5) {
  return {.key = {.runtime = "prod",
                  .group = "argoproj.io",
                  .kind = "Application",
                  .object_namespace = "argocd",
                  .name = name},
          .uid = "u-" + name,
          .sequence = sequence};
}

InventoryRow resource(const std::string& owner, const std::string& name,
                      std::int64_t sequence = 5) {
  return {.key = {.runtime = "prod",
                  .owner_uid = "u-" + owner,
                  .kind = "ConfigMap",
                  .object_namespace = "shop",
                  .name = name},
          .uid = "u-" + name,
          .manager = owner,
          .sequence = sequence};
}

InventoryRow rollout(const std::string& cluster, const std::string& name) {
  return {.key = {.runtime = "prod",
                  .origin = Origin::resource,
                  .cluster = cluster,
                  .group = "argoproj.io",
                  .kind = "Rollout",
                  .object_namespace = "shop",
                  .name = name},
          .uid = "u-" + name,
          .sequence = 5};
}

Inventory inventory_of(std::map<std::string, std::string, std::less<>> objects) {
  return {.token = "t", .shards = {0}, .sequence = kSequence, .objects = std::move(objects)};
}

struct Verdict {
  std::vector<std::string> gone;
  std::vector<std::string> again;
};

Verdict judge(const Inventory& inventory, std::vector<InventoryRow> rows) {
  InventoryVerdict verdict(inventory);
  Verdict found;
  for (auto& row : rows) verdict.add(std::move(row));
  verdict.finish();
  for (const auto& row : verdict.take_gone()) found.gone.push_back(row.key.name);
  found.again = verdict.again();
  return found;
}

TEST(InventoryVerdict, WhatTheInventoryDoesNotHaveIsGone) {
  const auto found =
      judge(inventory_of({{"u-shop", resources_digest({"/ConfigMap/shop/a"})}}),
            {app("ghost"), app("shop"), resource("ghost", "b"), resource("shop", "a")});
  EXPECT_THAT(found.gone, ElementsAre("ghost", "b"));
  EXPECT_THAT(found.again, IsEmpty());
}

TEST(InventoryVerdict, ResourcesThatDifferAreAskedFor) {
  const auto inventory = inventory_of(
      {{"u-shop", resources_digest({"/ConfigMap/shop/a"})}, {"u-cart", resources_digest({})}});
  const auto found = judge(inventory, {app("cart"), app("shop"), resource("cart", "x"),
                                       resource("shop", "a"), resource("shop", "b")});
  EXPECT_THAT(found.gone, IsEmpty());
  EXPECT_THAT(found.again, ElementsAre("u-cart", "u-shop"));
}

TEST(InventoryVerdict, ToldResourcesEndTheOthersAndNothingElse) {
  Inventory parts{.token = "t", .shards = {0}, .sequence = kSequence, .is_complete = false};
  parts.resources["u-shop"] = {"/ConfigMap/shop/a"};
  const auto found = judge(
      parts, {app("ghost"), resource("cart", "x"), resource("shop", "a"), resource("shop", "b")});
  EXPECT_THAT(found.gone, ElementsAre("b"));
  EXPECT_THAT(found.again, IsEmpty());
}

TEST(InventoryVerdict, WhatIsNewerThanTheInventoryStays) {
  const auto found = judge(
      inventory_of({}), {app("newer", kSequence), app("older", kSequence - 1), app("without", 0)});
  EXPECT_THAT(found.gone, ElementsAre("older"));
}

TEST(InventoryVerdict, NothingIsConcludedAboutOtherShards) {
  auto inventory = inventory_of({});
  inventory.replicas = 3;
  inventory.shards = {shard_of("shop", 3)};
  const std::string other = shard_of("app-0", 3) == shard_of("shop", 3) ? "app-1" : "app-0";
  ASSERT_NE(shard_of(other, 3), shard_of("shop", 3));
  const auto found =
      judge(inventory, {app(other), app("shop"), resource(other, "a"), resource("shop", "b")});
  EXPECT_THAT(found.gone, ElementsAre("shop", "b"));
}

TEST(InventoryVerdict, NothingIsConcludedAboutClustersAndKindsThatWereNotListed) {
  auto inventory = inventory_of({});
  inventory.is_of_applications = false;
  inventory.listed = {{"", "Rollout"}};
  auto workflow = rollout(std::string(kInCluster), "build");
  workflow.key.kind = "Workflow";
  const auto found = judge(inventory, {rollout(std::string(kInCluster), "shop"),
                                       rollout("https://other", "cart"), workflow});
  EXPECT_THAT(found.gone, ElementsAre("shop"));
}

TEST(InventoryVerdict, ItsDeletionEndsTheStateAndNoLaterOne) {
  const auto inventory = inventory_of({});
  const auto event = deletion_of(app("ghost"), inventory, 77);
  ObjectState state{.id = 1, .key = event.state.key, .uid = "u-ghost", .sequence = 5};
  const auto ended = fold(state, event);
  EXPECT_EQ(ended.outcome, Outcome::stored);
  EXPECT_EQ(ended.state.presence, Presence::gone);
  EXPECT_EQ(ended.state.event_id, "inventory/t");
  state.sequence = kSequence + 1;
  EXPECT_EQ(fold(state, event).outcome, Outcome::stale);
}

}  // namespace
}  // namespace gitops::control_plane_server
