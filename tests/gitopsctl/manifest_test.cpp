// What a bundle shows of objects of Kubernetes.
#include "gitopsctl/manifest.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"

namespace gitops::ctl {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Manifest, WhatMayHoldASecretIsLeftOut) {
  const Json container{
      {"name", "c"},
      {"env",
       {{{"name", "LOG_LEVEL"}, {"value", "debug"}},
        {{"name", "MOOD"}, {"value", "Canary1"}},
        {{"name", "TOKEN"}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}, {"key", "k"}}}}}}}},
      {"args", {"--listen=:80", "--api-token=Canary2", "--password", "Canary3", "--x", "y"}},
      {"livenessProbe", {{"httpGet", {{"httpHeaders", {{{"name", "X"}, {"value", "Canary4"}}}}}}}}};
  const Json object{{"metadata",
                     {{"name", "n"},
                      {"managedFields", {{{"manager", "m"}}}},
                      {"annotations", {{"meta.helm.sh/release-name", "rt"}, {"note", "Canary5"}}}}},
                    {"spec",
                     {{"template",
                       {{"metadata", {{"annotations", {{"a", "Canary6"}}}}},
                        {"spec", {{"containers", {container}}}}}}}},
                    {"binaryData", {{"b", "Canary7"}}}};
  const auto shown = printed_object(object);
  EXPECT_THAT(shown.dump(), Not(HasSubstr("Canary")));
  EXPECT_FALSE(shown["metadata"].contains("managedFields"));
  EXPECT_EQ(shown["metadata"]["annotations"]["meta.helm.sh/release-name"], "rt");
  const auto& kept = shown["spec"]["template"]["spec"]["containers"][0];
  EXPECT_EQ(kept["env"][0]["value"], "debug");
  EXPECT_EQ(kept["env"][2], container["env"][2]);
  EXPECT_EQ(kept["args"], Json({"--listen=:80", "--api-token=[left out]", "--password",
                                "[left out]", "--x", "y"}));
}

TEST(Manifest, OfASecretTheKeysAreShownAndItsValuesAreHidden) {
  const Json secret{{"metadata", {{"name", "s"}, {"annotations", {{"a", "Canary-value"}}}}},
                    {"type", "Opaque"},
                    {"data", {{"token", base64_encode("Canary-value")}}}};
  EXPECT_EQ(printed_secret(secret), Json({{"name", "s"}, {"type", "Opaque"}, {"keys", {"token"}}}));
  Redactor redactor;
  hide_values(secret, redactor);
  EXPECT_EQ(redactor.redacted("a Canary-value b"), "a [redacted] b");
}

TEST(Manifest, TheSecretsOfAPodAreThoseThatItNames) {
  const Json pod{
      {"spec",
       {{"imagePullSecrets", {{{"name", "pull"}}}},
        {"volumes",
         {{{"name", "v"}, {"secret", {{"secretName", "mounted"}}}},
          {{"name", "p"}, {"projected", {{"sources", {{{"secret", {{"name", "projected"}}}}}}}}}}},
        {"containers",
         {{{"envFrom", {{{"secretRef", {{"name", "all"}}}}}},
           {"env", {{{"valueFrom", {{"secretKeyRef", {{"name", "one"}, {"key", "k"}}}}}}}}}}}}}};
  EXPECT_THAT(secrets_of_pod(pod), ElementsAre("all", "mounted", "one", "projected", "pull"));
}

}  // namespace
}  // namespace gitops::ctl
