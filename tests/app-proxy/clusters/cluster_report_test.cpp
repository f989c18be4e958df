#include "app-proxy/clusters/cluster_report.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops::app_proxy {
namespace {

using control_plane::ClusterState;
using Json = nlohmann::json;

// An item of argocd-server's list.
Json item() {
  return {{"name", "edge"},
          {"server", "https://edge.example.test"},
          {"config", {{"tlsClientConfig", {{"insecure", false}}}}},
          {"info",
           {{"connectionState",
             {{"status", "Successful"}, {"message", ""}, {"attemptedAt", "2026-11-23T10:00:00Z"}}},
            {"serverVersion", "1.33"},
            {"cacheInfo",
             {{"resourcesCount", "120"},
              {"apisCount", "60"},
              {"lastCacheSyncTime", "2026-11-23T10:00:00Z"}}},
            {"applicationsCount", "3"},
            {"apiVersions", {"v1", "apps/v1"}}}}};
}

ClusterState state(const char* pointer = "/name", Json value = "edge") {
  auto one = item();
  one[Json::json_pointer(pointer)] = std::move(value);
  return parse_clusters(Json{{"items", {one}}}.dump())->at(0);
}

TEST(ClusterReport, ReadsArgoCdsList) {
  const auto cluster = state();
  EXPECT_EQ(cluster, (ClusterState{.name = "edge",
                                   .server = "https://edge.example.test",
                                   .status = "Successful",
                                   .message = "",
                                   .attempted_at = "2026-11-23T10:00:00Z",
                                   .server_version = "1.33",
                                   .resources = 120,
                                   .apis = 60,
                                   .last_cache_sync = "2026-11-23T10:00:00Z",
                                   .applications = 3,
                                   .api_versions = {"v1", "apps/v1"}}));
  EXPECT_EQ(state("/info/connectionState/status", "Weird").status, "Unknown");
  EXPECT_EQ(state("/name", 7).name, "https://edge.example.test");
  EXPECT_TRUE(parse_clusters(R"({"metadata":{},"items":null})")->empty());
  EXPECT_EQ(parse_clusters(Json{{"items", {item(), item(), 7}}}.dump())->size(), 1U);
  EXPECT_FALSE(parse_clusters("[]"));
  EXPECT_FALSE(parse_clusters(R"({"items":7})"));
}

TEST(ClusterReport, OnlyWhatChangedIsDue) {
  const ReportedClusters reported{{"https://edge.example.test", digest_of(state())},
                                  {"https://old.example.test", "x"}};
  const std::map<std::string, std::string> names{{"https://old.example.test", "old"}};
  auto due = due_clusters({state()}, reported, names);
  EXPECT_TRUE(due.changed.empty());
  ASSERT_EQ(due.gone.size(), 1U);
  EXPECT_EQ(due.gone[0].name, "old");
  EXPECT_EQ(due.gone[0].status, "Unknown");
  EXPECT_TRUE(due.gone[0].is_gone);
  // Times alone are no change, nor is the order of versions.
  for (const char* time :
       {"/info/connectionState/attemptedAt", "/info/cacheInfo/lastCacheSyncTime"}) {
    EXPECT_TRUE(due_clusters({state(time, "2026-11-24T00:00:00Z")}, reported, {}).changed.empty());
  }
  EXPECT_TRUE(
      due_clusters({state("/info/apiVersions", {"apps/v1", "v1"})}, reported, {}).changed.empty());
  for (const auto& [pointer, value] : {std::pair<const char*, Json>{"/name", "other"},
                                       {"/info/connectionState/status", "Failed"},
                                       {"/info/connectionState/message", "no route"},
                                       {"/info/serverVersion", "1.34"},
                                       {"/info/applicationsCount", "4"},
                                       {"/info/apiVersions", {"v1"}}}) {
    EXPECT_EQ(due_clusters({state(pointer, value)}, reported, {}).changed.size(), 1U) << pointer;
  }
}

TEST(ClusterReport, WhatStillHasASecretWasNotRemoved) {
  const std::vector<ClusterState> gone{state("/server", "https://a.example.test"),
                                       state("/server", "https://b.example.test/")};
  EXPECT_EQ(removed_of(gone, {}), gone);
  const auto removed = removed_of(gone, {"https://b.example.test", "https://c.example.test"});
  ASSERT_EQ(removed.size(), 1U);
  EXPECT_EQ(removed[0].server, "https://a.example.test");
}

TEST(ClusterReport, ChunksAreLimitedByCountAndByBytes) {
  std::vector<ClusterState> many(120, state());
  const auto sizes = [&](std::size_t count, std::size_t bytes) {
    std::vector<std::size_t> list;
    for (const auto& chunk : in_chunks(many, count, bytes)) list.push_back(chunk.size());
    return list;
  };
  EXPECT_EQ(sizes(50, 1'000'000), (std::vector<std::size_t>{50, 50, 20}));
  EXPECT_EQ(sizes(0, 1'000'000), (std::vector<std::size_t>{120}));
  EXPECT_EQ(sizes(50, 1).size(), 120U);
  // One that is large alone.
  many.resize(3);
  many[1].message.assign(5'000, 'x');
  EXPECT_EQ(sizes(50, 4'000), (std::vector<std::size_t>{1, 1, 1}));
  EXPECT_TRUE(in_chunks({}, 50, 1'000).empty());
}

TEST(ClusterReport, TheRecordIsReadAsItWasWritten) {
  const ClusterRecord record{.registration = "r",
                             .reported = {{"https://edge.example.test", "d"}},
                             .names = {{"https://edge.example.test", "edge"}}};
  const auto object = cluster_record_object(
      "runtime", record, R"({"metadata":{"name":"x","resourceVersion":"7"},"data":{"old":"1"}})");
  EXPECT_EQ(read_cluster_record(object), record);
  EXPECT_EQ(Json::parse(object)["metadata"]["resourceVersion"], "7");
  EXPECT_EQ(Json::parse(cluster_record_object("runtime", record))["metadata"],
            (Json{{"name", "cap-app-proxy-clusters"}, {"namespace", "runtime"}}));
  for (const char* text : {"", "[]", "{}", R"({"data":{"told.json":"["}})",
                           R"({"data":{"told.json":"{\"told\":[1]}"}})"}) {
    EXPECT_EQ(read_cluster_record(text), ClusterRecord{}) << text;
  }
}

}  // namespace
}  // namespace gitops::app_proxy
