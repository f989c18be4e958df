// The canary stands where secrets stand in logs, JSON, YAML, flags, headers and URLs; none may remain.
#include "gitopsctl/redaction.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"

namespace gitops::ctl {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kCanary = "Canary7Bird";

std::string redacted(const std::string& text) {
  return Redactor().redacted(text);
}

TEST(Redaction, SecretsByTheirNamesAreTakenOut) {
  const std::vector<std::string> texts = {
      "password=" + kCanary,
      "password: " + kCanary,
      "  - password:   two words " + kCanary,
      R"({"password":")" + kCanary + R"(","x":1})",
      R"({"password" : "quote \" )" + kCanary + R"(","x":1})",
      R"({"password":"ends with \\","token":")" + kCanary + R"("})",
      R"({"a":"{\"token\": \"x\\\"y )" + kCanary + R"(\", \"b\": 1}"})",
      R"({"config.yaml":"token: )" + kCanary + R"(\nother: 1\n"})",
      R"({"config.yaml":"token: \")" + kCanary + R"(\"\nother: 1\n"})",
      R"({"config.yaml":"key: 1\npassword: |\n  first\n  )" + kCanary + R"(\nother: 1\n"})",
      "client-secret: |-\n  first\n  " + kCanary + "\nnext: 1",
      "clientSecret: '" + kCanary + "'",
      "DB_PASSWORD=" + kCanary + " DB=x",
      "--token " + kCanary,
      "--argocd-token=" + kCanary,
      "GET /a?access_token=" + kCanary + "&x=1",
      "Authorization: Bearer " + kCanary,
      "authorization: Digest name, nonce=1 " + kCanary,
      "Cookie: a=b; session=" + kCanary,
      "sent Bearer " + kCanary + ".x",
      "Basic dXNlcjpwYXNzd29yZA==" + kCanary,
      "\"tokens\": [\"a\", \"" + kCanary + "\"]",
      "apikey => " + kCanary,
      "passphrase=" + kCanary,
      "pin password=12345" + kCanary,
      R"(msg="x" token=)" + kCanary,
      R"('secret': ')" + kCanary + "'",
  };
  for (const auto& text : texts) {
    EXPECT_THAT(redacted(text), AllOf(Not(HasSubstr(kCanary)), HasSubstr("[redacted]"))) << text;
  }
}

TEST(Redaction, SecretsByTheirFormAreTakenOut) {
  const std::string jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0." + kCanary;
  const std::vector<std::string> texts = {
      "https://ann:" + kCanary + "@git.example/x",
      "https://ann:pa@ss/" + kCanary + "@git.example/x",
      "postgres://" + kCanary + "@db/x",
      "a " + jwt + " b",
      "-----BEGIN RSA PRIVATE KEY-----\nMII" + kCanary + "\n-----END RSA PRIVATE KEY-----",
      R"({"k":"-----BEGIN PRIVATE KEY-----\nMII)" + kCanary + R"(\n-----END PRIVATE KEY-----\n"})",
      "-----BEGIN EC PRIVATE KEY-----\nMII" + kCanary + "\n",
      "MII" + kCanary + "\n-----END PRIVATE KEY-----\nrest",
      "x " + base64_encode("-----BEGIN PRIVATE KEY-----\n" + kCanary),
      "key 65f1a2b3c4d5e6f7a8b9c0d1." + kCanary + "0123456789abcdef",
      "ghp_0123456789" + kCanary,
      "remote: ATATT3xFfGF0" + kCanary + "=1A2B3C4D is not valid",
      "ATBB0123456789" + kCanary,
      "ATCTT3xFfGN0" + kCanary,
      "BBDC-MTIzNDU2+Nzg5/" + kCanary,
      "runner glrt-0123456789" + kCanary,
      "glcbt-64_0123456789" + kCanary,
      "glpat-0123456789" + kCanary,
  };
  for (const auto& text : texts) {
    const auto out = redacted(text);
    EXPECT_THAT(out, AllOf(Not(HasSubstr(kCanary)), HasSubstr("[redacted]"))) << text;
    EXPECT_THAT(out, Not(HasSubstr(base64_encode(kCanary).substr(0, 12)))) << text;
  }
  EXPECT_THAT(redacted("MII\n-----END PRIVATE KEY-----\nrest"), HasSubstr("\nrest"));
}

TEST(Redaction, KnownValuesAreTakenOutInEveryForm) {
  Redactor redactor;
  const std::string value = "pass \"word\"/+" + kCanary;
  redactor.hide(value + "\n");
  redactor.hide(R"({"bearerToken":"inner-)" + kCanary + R"(","user":{"x":"deep-)" + kCanary +
                R"("}})");
  redactor.hide("first line of it\nsecond-" + kCanary);
  redactor.hide("short");
  for (const auto& text :
       {"a " + value + " b", base64_encode(value), base64url_encode(value), percent_encode(value),
        Json(value).dump(), "x inner-" + kCanary, "deep-" + kCanary, "second-" + kCanary}) {
    const auto out = redactor.redacted(text);
    EXPECT_THAT(out, AllOf(Not(HasSubstr(kCanary)), HasSubstr("[redacted]"))) << text;
    EXPECT_THAT(out, Not(HasSubstr(base64_encode(value).substr(0, 20)))) << text;
  }
  EXPECT_EQ(redactor.redacted("short"), "short");
}

TEST(Redaction, InnocentTextsStay) {
  for (const std::string text : {
           "token is expired",
           "secret \"gitops-user-token\" not found",
           "gitops_token_refreshes_total{peer=\"x\"} 5",
           "Basic authentication is off",
           "Bearer tokens",
           R"({"secretName":"x","automountServiceAccountToken":false})",
           R"({"secretKeyRef":{"name":"argocd-token","key":"token"}})",
           R"({"tokenFile":"/var/run/token"})",
           "https://git.example/acme/apps.git",
           "image@sha256:0123456789abcdef0123456789abcdef",
           "-----BEGIN CERTIFICATE-----",
           "password:\n  nested: 1",
       }) {
    EXPECT_EQ(redacted(text), text);
  }
}

TEST(Redaction, JsonStaysJson) {
  const Json json{{"token", 5},
                  {"tokens", {"a", "b"}},
                  {"nested", {{"password", "x\"y\\"}, {"kept", "z"}}},
                  {"imagePullSecrets", {{{"name", "pull"}}}}};
  for (const int indent : {-1, 2}) {
    const auto out = Json::parse(redacted(json.dump(indent)), nullptr, false);
    ASSERT_TRUE(out.is_object()) << redacted(json.dump(indent));
    EXPECT_EQ(out["token"], "[redacted]");
    EXPECT_EQ(out["tokens"], "[redacted]");
    EXPECT_EQ(out["nested"]["password"], "[redacted]");
    EXPECT_EQ(out["nested"]["kept"], "z");
    EXPECT_EQ(out["imagePullSecrets"][0]["name"], "pull");
  }
}

TEST(Redaction, HostileTextsEnd) {
  for (const std::string piece : {"\"password\":\"", "password:\\\\\"", "token=[", "://@", "eyJ.",
                                  "-----BEGIN PRIVATE KEY-----", "password: |\\n ", "Bearer "}) {
    std::string text;
    for (int i = 0; i < 2'000; ++i) text += piece;
    EXPECT_LE(redacted(text).size(), text.size() * 3) << piece;
  }
}

}  // namespace
}  // namespace gitops::ctl
