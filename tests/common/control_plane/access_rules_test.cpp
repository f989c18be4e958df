#include "common/control_plane/access_rules.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace gitops::control_plane {
namespace {

const std::vector<std::string> kTeam{"t1"};

Entity shop() {
  return {.cluster = "c1",
          .git_source = "gs",
          .entity_namespace = "shop",
          .runtime = "prod",
          .labels = {{"team", "a"}, {"tier", "web"}}};
}

AbacRule rule(std::vector<std::string> actions, std::vector<AbacRule::Attribute> attributes = {},
              std::vector<std::string> teams = {"t1"}) {
  return {.id = "r",
          .entity_type = "gitopsApplications",
          .teams = std::move(teams),
          .tags = {},
          .actions = std::move(actions),
          .attributes = std::move(attributes)};
}

bool may(const std::vector<AbacRule>& rules, Action action = Action::sync,
         const Entity& entity = shop(), const std::vector<std::string>& teams = kTeam) {
  return allowing_rule(rules, teams, action, entity) != nullptr;
}

TEST(AccessRules, NothingIsAllowedWithoutARule) {
  EXPECT_FALSE(may({}));
  EXPECT_FALSE(may({rule({"VIEW"})}));
  EXPECT_FALSE(may({rule({})}));
  EXPECT_TRUE(may({rule({"VIEW", "SYNC"})}));
}

TEST(AccessRules, RulesAreForTheirTeams) {
  EXPECT_FALSE(may({rule({"SYNC"}, {}, {"t2"})}));
  EXPECT_FALSE(may({rule({"SYNC"}, {}, {})}));
  EXPECT_FALSE(may({rule({"SYNC"})}, Action::sync, shop(), {}));
  EXPECT_TRUE(may({rule({"SYNC"}, {}, {"t2", "t3"})}, Action::sync, shop(), {"t1", "t3"}));
}

TEST(AccessRules, KindsOfAttributesNarrowAndRulesAddUp) {
  const AbacRule::Attribute cluster{"CLUSTER", "", "c1"};
  const AbacRule::Attribute other_cluster{"CLUSTER", "", "c2"};
  const AbacRule::Attribute space{"NAMESPACE", "", "shop"};
  const AbacRule::Attribute other_space{"NAMESPACE", "", "pay"};
  EXPECT_TRUE(may({rule({"SYNC"}, {cluster})}));
  EXPECT_TRUE(may({rule({"SYNC"}, {cluster, space})}));
  EXPECT_FALSE(may({rule({"SYNC"}, {cluster, other_space})}));
  EXPECT_FALSE(may({rule({"SYNC"}, {other_cluster})}));
  // Values of one kind: one of them.
  EXPECT_TRUE(may({rule({"SYNC"}, {other_cluster, cluster, space})}));
  // One rule is enough, and no rule takes away.
  EXPECT_TRUE(may({rule({"SYNC"}, {other_cluster}), rule({"SYNC"}, {space})}));
  // The action of one rule and the attributes of another are no rule.
  EXPECT_FALSE(may({rule({"VIEW"}, {cluster}), rule({"SYNC"}, {other_cluster})}));
}

TEST(AccessRules, EachKeyOfALabelIsAKindOfItsOwn) {
  const AbacRule::Attribute a{"LABEL", "team", "a"};
  const AbacRule::Attribute b{"LABEL", "team", "b"};
  const AbacRule::Attribute web{"LABEL", "tier", "web"};
  const AbacRule::Attribute data{"LABEL", "tier", "data"};
  EXPECT_TRUE(may({rule({"SYNC"}, {a, b})}));
  EXPECT_TRUE(may({rule({"SYNC"}, {b, a, web})}));
  EXPECT_FALSE(may({rule({"SYNC"}, {a, data})}));
  EXPECT_FALSE(may({rule({"SYNC"}, {{"LABEL", "missing", "a"}})}));
  EXPECT_FALSE(may({rule({"SYNC"}, {{"LABEL", "", "a"}})}));
}

TEST(AccessRules, ALabelIsAKeyOrAKeyWithAValueInEitherForm) {
  EXPECT_TRUE(may({rule({"SYNC"}, {{"LABEL", std::nullopt, "team=a"}})}));
  EXPECT_TRUE(may({rule({"SYNC"}, {{"LABEL", "", "team"}})}));
  EXPECT_TRUE(may({rule({"SYNC"}, {{"LABEL", "team", ""}})}));
  // Both forms are alternatives for one key.
  EXPECT_TRUE(may({rule({"SYNC"}, {{"LABEL", "team", "b"}, {"LABEL", "", "team=a"}})}));
  EXPECT_FALSE(may({rule({"SYNC"}, {{"LABEL", "", "team=b"}})}));
  EXPECT_FALSE(may({rule({"SYNC"}, {{"LABEL", "", "owner"}})}));
  EXPECT_FALSE(may({rule({"SYNC"}, {{"LABEL", "", ""}})}));
}

TEST(AccessRules, ARuleIsForItsTypeOfEntity) {
  auto workflows = rule({"SYNC"});
  workflows.entity_type = "workflows";
  EXPECT_FALSE(may({workflows}));
  EXPECT_TRUE(may({workflows}, Action::sync, {.type = EntityType::workflows}));
}

TEST(AccessRules, TheRuleThatAllowsIsReturned) {
  std::vector<AbacRule> rules{rule({"VIEW"}), rule({"SYNC"}), rule({"SYNC"})};
  rules[1].id = "first";
  const auto* const found = allowing_rule(rules, kTeam, Action::sync, shop());
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->id, "first");
}

TEST(AccessRules, WhatIsUnknownFitsNothing) {
  EXPECT_FALSE(may({rule({"SYNC"}, {{"MOON_PHASE", "", "full"}})}));
  EXPECT_FALSE(may({rule({"SYNC"}, {{"PRODUCT_NAME", "", ""}})}));
  EXPECT_FALSE(may({rule({"SYNC"}, {{"cluster", "", "c1"}})}));
  EXPECT_FALSE(may({rule({"sync"})}));
}

TEST(AccessRules, SyncIncludesRefresh) {
  EXPECT_TRUE(may({rule({"SYNC"})}, Action::refresh));
  EXPECT_TRUE(may({rule({"REFRESH"})}, Action::refresh));
  EXPECT_FALSE(may({rule({"REFRESH"})}, Action::sync));
  EXPECT_FALSE(may({rule({"SYNC"})}, Action::terminate_sync));
}

TEST(AccessRules, NamesAreThoseOfTheControlPlane) {
  EXPECT_EQ(to_string(Action::view), "VIEW");
  EXPECT_EQ(to_string(Action::rollout_skip_current_step), "ROLLOUT_SKIP_CURRENT_STEP");
  EXPECT_EQ(to_string(Action::promote_to), "PROMOTE_TO");
  EXPECT_EQ(to_string(EntityType::promotion_flows), "promotionFlows");
  EXPECT_EQ(entity_types().size(), 7U);
  for (const auto type : entity_types()) {
    EXPECT_EQ(entity_type_of(to_string(type)), type);
    for (const auto action : actions_on(type)) EXPECT_EQ(action_of(to_string(action)), action);
  }
  EXPECT_EQ(entity_type_of("moons"), std::nullopt);
  EXPECT_EQ(action_of("sync"), std::nullopt);
}

}  // namespace
}  // namespace gitops::control_plane
