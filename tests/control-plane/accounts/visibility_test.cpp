#include "control-plane/accounts/visibility.hpp"

#include <gmock/gmock.h>

namespace gitops::control_plane_server {
namespace {

using testing::ElementsAre;
using testing::Optional;

using Attribute = AbacRule::Attribute;

AbacRule view_rule(std::vector<Attribute> attributes, std::vector<std::string> teams = {"team"},
                   std::vector<std::string> actions = {"VIEW"}) {
  return {.id = "r",
          .entity_type = "gitopsApplications",
          .teams = std::move(teams),
          .tags = {},
          .actions = std::move(actions),
          .attributes = std::move(attributes)};
}

Visibility visibility(std::vector<AbacRule> rules) {
  const std::vector<std::string> teams{"team"};
  return Visibility(rules, teams);
}

// An Application of the runtime prod in the namespace argocd.
struct Shop {
  explicit Shop(const std::string& metadata = "{}") {
    state.key = {
        .runtime = "prod", .kind = "Application", .object_namespace = "argocd", .name = "shop"};
    state.destination = "https://10.0.0.1";
    json = "{\"metadata\":" + metadata + "}";
  }
  bool is_shown(const Visibility& by) const {
    JsonParser parser;
    return by.shows(state, parser.parse(json, "application").value());
  }
  ObjectState state;
  std::string json;
};

TEST(Visibility, WithoutARuleEverybodySeesAll) {
  EXPECT_TRUE(visibility({}).is_everything());
  // Rules with other actions and for other entities say nothing about seeing.
  EXPECT_TRUE(visibility({view_rule({}, {"team"}, {"SYNC"})}).is_everything());
  auto workflows = view_rule({});
  workflows.entity_type = "workflows";
  EXPECT_TRUE(visibility({workflows}).is_everything());
  EXPECT_TRUE(Shop().is_shown(visibility({})));
}

TEST(Visibility, WithARuleOnlyItsTeamsSee) {
  const auto others = visibility({view_rule({}, {"other"})});
  EXPECT_FALSE(others.is_everything());
  EXPECT_TRUE(others.is_nothing());
  EXPECT_FALSE(Shop().is_shown(others));
  EXPECT_TRUE(visibility({view_rule({}, {"other"}), view_rule({})}).is_everything());
}

TEST(Visibility, ValuesOfAnAttributeAreAlternativesAndAttributesNarrow) {
  const Attribute here{.name = "RUNTIME", .key = {}, .value = "prod"};
  const Attribute there{.name = "RUNTIME", .key = {}, .value = "stage"};
  const Attribute cluster{.name = "CLUSTER", .key = {}, .value = "https://10.0.0.1"};
  const Attribute elsewhere{.name = "CLUSTER", .key = {}, .value = "https://10.0.0.2"};
  const Attribute own{.name = "NAMESPACE", .key = {}, .value = "argocd"};
  EXPECT_TRUE(Shop().is_shown(visibility({view_rule({there, here, cluster, own})})));
  EXPECT_FALSE(Shop().is_shown(visibility({view_rule({there, here, elsewhere})})));
  EXPECT_FALSE(Shop().is_shown(visibility({view_rule({there})})));
  // Rules add up.
  EXPECT_TRUE(Shop().is_shown(visibility({view_rule({there}), view_rule({own})})));
}

TEST(Visibility, LabelsAreAKeyOrAKeyWithAValue) {
  const Shop shop(R"({"labels":{"team":"a","tier":"web"}})");
  const auto shows = [&shop](std::vector<Attribute> attributes) {
    return shop.is_shown(visibility({view_rule(std::move(attributes))}));
  };
  EXPECT_TRUE(shows({{.name = "LABEL", .key = "team", .value = "a"}}));
  EXPECT_TRUE(shows({{.name = "LABEL", .key = {}, .value = "team=a"}}));
  EXPECT_TRUE(shows({{.name = "LABEL", .key = {}, .value = "team"}}));
  EXPECT_TRUE(shows({{.name = "LABEL", .key = "team", .value = ""}}));
  EXPECT_TRUE(shows({{.name = "LABEL", .key = "team", .value = "b"},
                     {.name = "LABEL", .key = "team", .value = "a"}}));
  EXPECT_FALSE(shows({{.name = "LABEL", .key = "team", .value = "b"}}));
  EXPECT_FALSE(shows({{.name = "LABEL", .key = {}, .value = "owner"}}));
  EXPECT_FALSE(shows({{.name = "LABEL", .key = {}, .value = ""}}));
  // Different keys narrow.
  EXPECT_FALSE(shows({{.name = "LABEL", .key = "team", .value = "a"},
                      {.name = "LABEL", .key = "tier", .value = "db"}}));
}

TEST(Visibility, GitSourceAndProductComeFromTheMetadata) {
  const Attribute source{.name = "GIT_SOURCE", .key = {}, .value = "gs"};
  const Attribute product{.name = "PRODUCT_NAME", .key = {}, .value = "store"};
  const Shop tracked(
      R"({"annotations":{"argocd.argoproj.io/tracking-id":"argocd_gs:argoproj.io/Application:a/b",
          "codefresh.io/product":"store"}})");
  EXPECT_TRUE(tracked.is_shown(visibility({view_rule({source, product})})));
  const Shop labelled(
      R"({"labels":{"app.kubernetes.io/instance":"gs","codefresh.io/product":"store"}})");
  EXPECT_TRUE(labelled.is_shown(visibility({view_rule({source, product})})));
  EXPECT_FALSE(Shop().is_shown(visibility({view_rule({source})})));
  EXPECT_FALSE(Shop().is_shown(visibility({view_rule({product})})));
}

TEST(Visibility, AnAttributeOfOtherEntitiesHidesTheApplication) {
  EXPECT_FALSE(Shop().is_shown(
      visibility({view_rule({{.name = "ENVIRONMENT_KIND", .key = {}, .value = "PROD"}})})));
}

TEST(Visibility, AStatementSelectsByWhatEveryRuleLimits) {
  const Attribute prod{.name = "RUNTIME", .key = {}, .value = "prod"};
  const Attribute stage{.name = "RUNTIME", .key = {}, .value = "stage"};
  const Attribute team{.name = "LABEL", .key = "team", .value = "a"};
  const Attribute any_tier{.name = "LABEL", .key = {}, .value = "tier"};
  const auto both = visibility({view_rule({prod, team}), view_rule({stage, any_tier})});
  EXPECT_THAT(both.values_of("RUNTIME"), Optional(ElementsAre("prod", "stage")));
  EXPECT_THAT(both.values_of("LABEL"), Optional(ElementsAre("team=a", "tier")));
  EXPECT_TRUE(both.needs_body());
  const auto one = visibility({view_rule({prod}), view_rule({team})});
  EXPECT_EQ(one.values_of("RUNTIME"), std::nullopt);
  EXPECT_FALSE(visibility({view_rule({prod})}).needs_body());
  EXPECT_EQ(visibility({}).values_of("RUNTIME"), std::nullopt);
}

}  // namespace
}  // namespace gitops::control_plane_server
