#include "control-plane/runtimes/cluster_view.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/control_plane/graphql.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

Json sample_report() {
  return Json::array({{{"name", "a"},
                       {"runtime", "prod"},
                       {"server", "https://a"},
                       {"info",
                        {{"connectionState", {{"status", "Successful"}, {"message", "fine"}}},
                         {"serverVersion", "1.31"},
                         {"cacheInfo", {{"resourcesCount", 7}, {"apisCount", 3}}},
                         {"applicationsCount", 2},
                         {"apiVersions", {"v1", "apps/v1"}}}}}});
}

TEST(ClusterView, AReportedClusterIsShownAsItCame) {
  const auto report = read_cluster_report(sample_report().dump(), "prod");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->removed, IsEmpty());
  ASSERT_EQ(report->present.size(), 1U);
  const auto json = Json::parse(cluster_json(report->present[0], "acc"));
  EXPECT_EQ(json["metadata"]["name"], "a");
  EXPECT_EQ(json["metadata"]["runtime"], "prod");
  EXPECT_EQ(json["metadata"]["account"], "acc");
  EXPECT_EQ(json["server"], "https://a");
  const auto& info = json["info"];
  EXPECT_EQ(info["connectionState"]["status"], "Successful");
  EXPECT_EQ(info["connectionState"]["message"], "fine");
  EXPECT_TRUE(info["connectionState"]["attemptedAt"].is_null());
  EXPECT_EQ(info["serverVersion"], "1.31");
  EXPECT_EQ(info["cacheInfo"]["resourcesCount"], 7);
  EXPECT_EQ(info["applicationsCount"], 2);
  EXPECT_EQ(info["apiVersions"], Json::array({"v1", "apps/v1"}));
}

TEST(ClusterView, TheCommandLineNeverGetsNullWhereItEnds) {
  for (const auto* info : {"{}", "", "null", "[]", R"({"connectionState":null,"cacheInfo":1})"}) {
    const auto json =
        Json::parse(cluster_json({.runtime = "r", .server = "s", .name = "n", .info = info}, "a"));
    EXPECT_EQ(json["info"]["connectionState"]["status"], "Unknown") << info;
    EXPECT_EQ(json["info"]["applicationsCount"], 0) << info;
    EXPECT_TRUE(json["info"]["cacheInfo"].is_object()) << info;
  }
}

TEST(ClusterView, CountsStayWithinGraphqlsIntegers) {
  const auto json = Json::parse(cluster_json(
      {.runtime = "r", .server = "s", .name = "n", .info = R"({"applicationsCount":9000000000,
                                                "cacheInfo":{"resourcesCount":-1}})"},
      "a"));
  EXPECT_EQ(json["info"]["applicationsCount"], 2'147'483'647);
  EXPECT_EQ(json["info"]["cacheInfo"]["resourcesCount"], 0);
}

TEST(ClusterView, AC_34_AnotherRuntimesClusterIsRefused) {
  auto list = sample_report();
  list.push_back(list[0]);
  list[1]["runtime"] = "stage";
  const auto report = read_cluster_report(list.dump(), "prod");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::invalid_argument);
}

TEST(ClusterView, MalformedClustersAreRefused) {
  for (const auto& [member, value] : std::vector<std::pair<const char*, std::string>>{
           {"name", ""}, {"server", ""}, {"name", "a\nb"}, {"server", std::string(1'001, 'a')}}) {
    auto list = sample_report();
    list[0][member] = value;
    EXPECT_FALSE(read_cluster_report(list.dump(), "prod")) << member;
  }
  const auto empty = read_cluster_report("null", "prod");
  ASSERT_TRUE(empty);
  EXPECT_THAT(empty->present, IsEmpty());
  EXPECT_TRUE(read_cluster_report("[null]", "prod"));
}

TEST(ClusterView, AClusterThatWasRemovedIsToldByItsMessage) {
  auto list = sample_report();
  auto& state = list[0]["info"]["connectionState"];
  state = {{"status", "Unknown"}, {"message", "no applications"}};
  EXPECT_THAT(read_cluster_report(list.dump(), "prod")->removed, IsEmpty());
  state["message"] = std::string(control_plane::kClusterRemoved);
  const auto report = read_cluster_report(list.dump(), "prod");
  EXPECT_THAT(report->removed, ElementsAre("https://a"));
  EXPECT_THAT(report->present, IsEmpty());
  state["status"] = "Failed";
  EXPECT_THAT(read_cluster_report(list.dump(), "prod")->removed, IsEmpty());
}

TEST(ClusterView, APagesPositionIsReadAgain) {
  const ClusterRow row{.runtime = "prod", .server = "https://a", .name = "a b", .info = "{}"};
  const auto query = query_after(cluster_key(row));
  ASSERT_TRUE(query);
  EXPECT_EQ(query->after_name, "a b");
  EXPECT_EQ(query->after_runtime, "prod");
  EXPECT_EQ(query->after_server, "https://a");
  for (const auto* wrong : {"", "a", "a\nb"}) EXPECT_FALSE(query_after(wrong)) << wrong;
}

}  // namespace
}  // namespace gitops::control_plane_server
