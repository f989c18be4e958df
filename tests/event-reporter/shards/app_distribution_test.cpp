#include "event-reporter/shards/app_distribution.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace gitops::reporter {
namespace {

using Json = nlohmann::json;

const std::vector<AppName> kApps = {
    {"argocd", "app-4"}, {"argocd", "app-0"}, {"shop", "app-0"}, {"argocd", "app-1"}};

TEST(AppDistribution, TellsShardsInOrder) {
  EXPECT_EQ(app_distribution(kApps, 3, "").value(),
            R"({"default":{"distribution":{"0":1,"1":1,"2":2},"apps":{)"
            R"("argocd/app-0":2,"argocd/app-1":0,"argocd/app-4":1,"shop/app-0":2}}})");
}

TEST(AppDistribution, NumbersAreNotSortedAsTexts) {
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) names.push_back("app-" + std::to_string(i));
  std::vector<AppName> apps;
  for (const auto& name : names) apps.push_back({"ns", name});
  const auto text = app_distribution(apps, 12, "").value();
  EXPECT_LT(text.find("\"2\":"), text.find("\"10\":"));
  const Json distribution = Json::parse(text)["default"]["distribution"];
  std::size_t sum = 0;
  for (const auto& count : distribution) sum += count.get<std::size_t>();
  EXPECT_EQ(sum, 200U);
  EXPECT_EQ(distribution.size(), 12U);
}

TEST(AppDistribution, OneReplicaHasThemAll) {
  for (const std::uint32_t replicas : {0U, 1U}) {
    EXPECT_EQ(Json::parse(app_distribution(kApps, replicas, "").value())["default"]["distribution"],
              Json({{"0", 4}}));
  }
}

TEST(AppDistribution, NoApplicationsAreNoShards) {
  EXPECT_EQ(app_distribution({}, 3, "").value(), R"({"default":{"distribution":{},"apps":{}}})");
}

TEST(AppDistribution, CountsAnApplicationOnce) {
  const std::vector<AppName> twice = {{"a", "app-0"}, {"a", "app-0"}};
  EXPECT_EQ(app_distribution(twice, 3, "").value(),
            R"({"default":{"distribution":{"2":1},"apps":{"a/app-0":2}}})");
}

TEST(AppDistribution, AnswersEachShardingOnceInTheOrderAskedFor) {
  const std::vector<AppName> one = {{"a", "app-0"}};
  const std::string each = R"({"distribution":{"2":1},"apps":{"a/app-0":2}})";
  EXPECT_EQ(app_distribution(one, 3, "legacy").value(), "{\"legacy\":" + each + "}");
  EXPECT_EQ(app_distribution(one, 3, "z,legacy,,z,a,").value(),
            "{\"z\":" + each + ",\"legacy\":" + each + ",\"a\":" + each + "}");
  EXPECT_EQ(app_distribution(one, 3, ",,").value(), "{\"default\":" + each + "}");
}

TEST(AppDistribution, AC24_HostileNamesStayTexts) {
  const std::vector<AppName> apps = {{"n\"s", "a\\\n\x01"}, {"ns", "\xff\xfe"}};
  const auto text = app_distribution(apps, 3, "a\"},\xc3,{\"b").value();
  const Json json = Json::parse(text);
  EXPECT_EQ(json.size(), 3U);
  EXPECT_TRUE(json.contains("a\"}"));
  EXPECT_TRUE(json.contains("{\"b"));
  EXPECT_EQ(json["{\"b"]["apps"].size(), 2U);
  EXPECT_TRUE(json["{\"b"]["apps"].contains("n\"s/a\\\n\x01"));
}

TEST(AppDistribution, AC24_ManyShardingsAreRefused) {
  std::string names;
  for (int i = 0; i < 16; ++i) names += std::to_string(i) + ",";
  EXPECT_EQ(Json::parse(app_distribution(kApps, 3, names).value()).size(), 16U);
  const auto refused = app_distribution(kApps, 3, names + "one-more");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(app_distribution(kApps, 3, std::string(100'000, ',')));
}

}  // namespace
}  // namespace gitops::reporter
