#include "app-proxy/sealing/sealing_keys.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

Json secret(const char* name, const char* created, Json data) {
  return {{"metadata", {{"name", name}, {"creationTimestamp", created}}},
          {"data", std::move(data)}};
}

TEST(SealingKeys, TheNewestKeyIsFirst) {
  const Json data{{"tls.crt", base64_encode("c")}, {"tls.key", base64_encode("k")}};
  const Json list{
      {"items",
       {secret("old", "2025-01-01T00:00:00Z", data), secret("new", "2026-01-01T00:00:00Z", data),
        secret("middle", "2025-06-01T00:00:00Z", data),
        secret("bad", "2027-01-01T00:00:00Z", {{"tls.crt", "?"}, {"tls.key", "?"}}),
        secret("half", "2027-01-01T00:00:00Z", {{"tls.crt", base64_encode("c")}})}}};
  const auto keys = sealing_keys_in(list.dump());
  ASSERT_EQ(keys.size(), 3U);
  EXPECT_EQ(keys[0].name, "new");
  EXPECT_EQ(keys[1].name, "middle");
  EXPECT_EQ(keys[2].name, "old");
  EXPECT_EQ(keys[0].certificate, "c");
  EXPECT_TRUE(keys[0].private_key == Secret("k"));
}

TEST(SealingKeys, WhatIsNoListHasNone) {
  for (const char* text : {"", "null", "[]", "{}", R"({"items":7})", R"({"items":[7,null,{}]})"}) {
    EXPECT_TRUE(sealing_keys_in(text).empty()) << text;
  }
}

// What the controller looks for: its label, the type, and both parts.
TEST(SealingKeys, AreSecretsOfTheController) {
  const SealingKeyFile file{.id = "Id_1", .certificate = "c"};
  const auto object = Json::parse(sealing_key_object("runtime", file, Secret("k")));
  EXPECT_EQ(object["type"], "kubernetes.io/tls");
  EXPECT_EQ(object["metadata"]["labels"]["sealedsecrets.bitnami.com/sealed-secrets-key"], "active");
  EXPECT_EQ(object["metadata"]["labels"]["codefresh.io/sealing-key"], "true");
  const auto read = sealing_keys_in(Json{{"items", {object}}}.dump());
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].id, "Id_1");
  EXPECT_EQ(read[0].certificate, "c");
  const auto other = Json::parse(sealing_key_object("runtime", {"Id_2", "c"}, Secret("k")));
  EXPECT_NE(other["metadata"]["name"], object["metadata"]["name"]);
}

}  // namespace
}  // namespace gitops::app_proxy
