#include "event-reporter/event/resource_event.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops::reporter {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace r = k8s::resources;

constexpr std::string_view kRollout = R"({"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout",
  "metadata":{"name":"checkout","namespace":"shop","uid":"u-1","resourceVersion":"51007",
    "managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{}}}],"labels":{"a":"\u00e4\n<b>"}},
  "spec":{"replicas":3,"big":12345678901234567890,"bigger":32000000000000000000},"status":{"phase":"Healthy"}})";

json object_of(const std::string& body) {
  return json::parse(json::parse(body)["data"]["object"].get<std::string>());
}

TEST(ResourceEvent, HasTheFormOfTheExistingReporters) {
  const auto body = resource_event(kRollout, r::kRollouts, {});
  const auto event = json::parse(body);
  EXPECT_EQ(event.size(), 1U);
  EXPECT_EQ(event["data"].size(), 1U);
  auto expected = json::parse(kRollout);
  expected["metadata"].erase("managedFields");
  EXPECT_EQ(object_of(body), expected);
  EXPECT_THAT(event["data"]["object"].get<std::string>(), HasSubstr("12345678901234567890,"))
      << "text stays text";
  EXPECT_THAT(event["data"]["object"].get<std::string>(), HasSubstr("32000000000000000000}"));
  EXPECT_EQ(read_resource(kRollout).value().uid, "u-1");
}

TEST(ResourceEvent, AnItemOfAListGetsItsKind) {
  const auto body = resource_event(R"({"metadata":{"name":"web-1"}})", r::kReplicaSets, {});
  EXPECT_EQ(
      object_of(body),
      json({{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"metadata", {{"name", "web-1"}}}}));
}

TEST(ResourceEvent, NamesTheManagedCluster) {
  const auto event =
      json::parse(resource_event(kRollout, r::kRollouts, "https://prod.example.com:6443"));
  EXPECT_EQ(event["data"]["cluster"], "https://prod.example.com:6443");
}

TEST(ResourceEvent, ADeletionIsSeenByThoseWhoOnlyKnowTheObject) {
  const auto now = *parse_rfc3339("2026-03-04T09:15:27Z");
  const auto body = deleted_resource_event(kRollout, r::kRollouts, {}, now);
  EXPECT_EQ(json::parse(body)["data"]["deleted"], true);
  EXPECT_EQ(object_of(body)["metadata"]["deletionTimestamp"], "2026-03-04T09:15:27Z");
  EXPECT_EQ(object_of(body)["spec"]["replicas"], 3);
  for (const auto* time : {R"("2026-01-01T00:00:00Z")", "null"}) {
    const auto text = std::string(R"({"metadata":{"name":"x","deletionTimestamp":)") + time + "}}";
    EXPECT_EQ(object_of(deleted_resource_event(text, r::kRollouts, {}, now))["metadata"],
              json({{"name", "x"},
                    {"deletionTimestamp",
                     time[0] == 'n' ? "2026-03-04T09:15:27Z" : "2026-01-01T00:00:00Z"}}));
  }
}

TEST(ResourceEvent, WhatIsKnownOnlyByNameIsToldByName) {
  const auto now = *parse_rfc3339("2026-03-04T09:15:27Z");
  const auto stub = resource_stub({"shop", "checkout"}, "u-1");
  EXPECT_EQ(object_of(deleted_resource_event(stub, r::kRollouts, {}, now)),
            R"({"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","metadata":{"name":"checkout",
                "namespace":"shop","uid":"u-1","deletionTimestamp":"2026-03-04T09:15:27Z"}})"_json);
}

TEST(ResourceEvent, WhatIsNoObjectIsNotRead) {
  for (const auto* text : {"", "[]", "nonsense", R"({"a":tru})", R"({"a":1)"}) {
    const auto facts = read_resource(text);
    ASSERT_FALSE(facts) << text;
    EXPECT_EQ(facts.error().code, ErrorCode::invalid_data);
  }
}

TEST(ResourceEvent, TheReducedFormStillSaysWhatItIsAbout) {
  auto large = json::parse(kRollout);
  large["spec"]["padding"] = std::string(10'000, 'x');
  large["status"]["conditions"] = json::array({1, 2, 3});
  const auto now = *parse_rfc3339("2026-03-04T09:15:27Z");
  const auto body = deleted_resource_event(large.dump(), r::kRollouts, "https://c", now);
  const auto reduced = reduced_resource_event(body);
  EXPECT_LT(reduced.size(), 500U);
  const auto event = json::parse(reduced);
  EXPECT_EQ(event["data"]["cluster"], "https://c");
  EXPECT_EQ(event["data"]["deleted"], true);
  EXPECT_EQ(object_of(reduced),
            R"({"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","metadata":{"name":"checkout",
                "namespace":"shop","uid":"u-1","resourceVersion":"51007",
                "deletionTimestamp":"2026-03-04T09:15:27Z"},"status":{"phase":"Healthy"}})"_json);
  EXPECT_THAT(reduced_resource_event(reduced), IsEmpty());
  EXPECT_THAT(reduced_resource_event("nonsense"), IsEmpty());
}

}  // namespace
}  // namespace gitops::reporter
