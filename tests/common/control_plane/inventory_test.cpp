#include "common/control_plane/inventory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::control_plane {
namespace {

using ::testing::HasSubstr;

Result<Inventory> read(std::string_view json) {
  JsonParser parser;
  return read_inventory(parser, json);
}

TEST(Inventory, IsReadAsItWasWritten) {
  const Inventory complete{
      .token = "t\"1",
      .shards = {0, 2},
      .replicas = 3,
      .sequence = 1'772'625'600'000'000,
      .objects = {{"u-1", resources_digest({"/ConfigMap/shop/a"})}, {"u-2", ""}}};
  const auto again = read(to_json(complete));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, complete);
  const Inventory parts{.token = "t",
                        .is_of_applications = false,
                        .shards = {0},
                        .sequence = 7,
                        .listed = {{"", "Rollout"}, {"https://a", "Rollout"}},
                        .is_complete = false,
                        .resources = {{"u-1", {"/ConfigMap/shop/a", "apps/Deployment/shop/b"}}},
                        .is_last = true};
  const auto second = read(to_json(parts));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(*second, parts);
}

TEST(Inventory, AnotherShapeIsRefusedByTheNameOfItsMember) {
  const std::string head = R"("token":"t","mode":"app","sequence":7,"replicas":2)";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[]", "inventory"},
      {R"({"mode":"app"})", "token"},
      {R"({"token":"t","mode":"x"})", "mode"},
      {R"({"token":"t","mode":"app","sequence":0})", "sequence"},
      {R"({"token":"t","mode":"app","sequence":7,"replicas":0})", "replicas"},
      {R"({"token":"t","mode":"app","sequence":7,"replicas":99999999999})", "replicas"},
      {"{" + head + "}", "shards"},
      {"{" + head + R"(,"shards":[2],"objects":{}})", "shards"},
      {"{" + head + R"(,"shards":[-1],"objects":{}})", "shards"},
      {"{" + head + R"(,"shards":[0],"listed":[{}],"objects":{}})", "listed"},
      {"{" + head + R"(,"shards":[0],"objects":[]})", "objects"},
      {"{" + head + R"(,"shards":[0],"objects":{"u":1}})", "objects"},
      {"{" + head + R"(,"shards":[0],"objects":{"":"d"}})", "objects"},
      {"{" + head + R"(,"shards":[0]})", "resources"},
      {"{" + head + R"(,"shards":[0],"resources":{"u":[1]}})", "resources"},
  };
  for (const auto& [json, named] : cases) {
    const auto inventory = read(json);
    ASSERT_FALSE(inventory) << json;
    EXPECT_EQ(inventory.error().code, ErrorCode::invalid_data) << json;
    EXPECT_THAT(inventory.error().message, HasSubstr(named)) << json;
  }
}

TEST(Inventory, ADigestIsOfTheSetOfIdentities) {
  EXPECT_EQ(resources_digest({"a/B/c/d", "/B/c/d"}), resources_digest({"/B/c/d", "a/B/c/d"}));
  EXPECT_NE(resources_digest({"a/B/c/d"}), resources_digest({}));
  EXPECT_NE(resources_digest({"a", "b"}), resources_digest({"ab"}));
  EXPECT_EQ(resources_digest({}).size(), 32U);
}

TEST(Inventory, TheShardFollowsFromTheName) {
  EXPECT_EQ(shard_of("web", 1), 0U);
  EXPECT_EQ(shard_of("", 3), 0U);
  // FNV-1a of "a" is 0xe40c292c.
  EXPECT_EQ(shard_of("a", 1000), 0xe40c292cU % 1000);
}

}  // namespace
}  // namespace gitops::control_plane
