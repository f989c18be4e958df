#include "control-plane/views/promotion_view.hpp"

#include <gtest/gtest.h>

#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

bool fits(const Json& selector, const Labels& labels) {
  JsonParser parser;
  const auto text = selector.dump();
  return selector_fits(parser.parse(text, "selector").value(), labels);
}

TEST(PromotionTemplates, SelectorsAreThoseOfKubernetes) {
  const Labels labels{{"team", "a"}, {"tier", "web"}};
  EXPECT_TRUE(fits(Json::object(), labels));
  EXPECT_TRUE(fits({{"matchLabels", {{"team", "a"}}}}, labels));
  EXPECT_FALSE(fits({{"matchLabels", {{"team", "a"}, {"tier", "db"}}}}, labels));
  const auto expression = [&](const Json& one) {
    return fits({{"matchExpressions", {one}}}, labels);
  };
  EXPECT_TRUE(expression({{"key", "team"}, {"operator", "In"}, {"values", {"b", "a"}}}));
  EXPECT_FALSE(expression({{"key", "none"}, {"operator", "In"}, {"values", {"a"}}}));
  EXPECT_TRUE(expression({{"key", "none"}, {"operator", "NotIn"}, {"values", {"a"}}}));
  EXPECT_FALSE(expression({{"key", "team"}, {"operator", "NotIn"}, {"values", {"a"}}}));
  EXPECT_TRUE(expression({{"key", "team"}, {"operator", "Exists"}}));
  EXPECT_FALSE(expression({{"key", "team"}, {"operator", "DoesNotExist"}}));
  EXPECT_FALSE(expression({{"key", "team"}, {"operator", "Resembles"}, {"values", {"a"}}}));
}

std::string template_of(int priority, const char* glob) {
  return Json{{"spec",
               {{"priority", priority},
                {"applicationSourceSelector", {{"matchLabels", {{"team", "a"}}}}},
                {"versionSource", {{"file", "Chart.yaml"}, {"jsonPath", "$.appVersion"}}},
                {"promotion", {{glob, {{"jsonPaths", {"$.image.tag"}}}}}}}}}
      .dump();
}

TEST(PromotionTemplates, TheHighestPriorityCounts) {
  const Labels labels{{"team", "a"}};
  const auto chosen = promotion_template_json({{"a", template_of(1, "low.yaml")},
                                               {"c", template_of(5, "later.yaml")},
                                               {"b", template_of(5, "values.yaml")},
                                               {"bad", "{"}},
                                              labels);
  ASSERT_TRUE(chosen);
  const auto json = Json::parse(*chosen);
  EXPECT_EQ(json["versionSource"]["jsonPath"], "$.appVersion");
  EXPECT_EQ(json["promotion"],
            Json::parse(R"([{"glob":"values.yaml","jsonPaths":["$.image.tag"]}])"));
  EXPECT_FALSE(promotion_template_json({{"a", template_of(1, "x")}}, {}));
}

TEST(PromotionTemplates, WithoutRulesEverythingIsPromoted) {
  const auto chosen = promotion_template_json({{"a", R"({"spec":{}})"}}, {});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(Json::parse(*chosen), Json::parse(R"({"versionSource":null,"promotion":null})"));
}

}  // namespace
}  // namespace gitops::control_plane_server
