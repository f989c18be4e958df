#include "k8s-client/exec_credential.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace gitops::k8s {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExecCredential, ReadsTokenAndEnd) {
  const auto credential = parse_exec_credential(
      R"({"kind":"ExecCredential","apiVersion":"v","status":{"token":"a","expirationTimestamp":"2030-01-02T03:04:05Z"}})",
      "v");
  ASSERT_TRUE(credential) << credential.error().message;
  EXPECT_EQ(credential->token.reveal(), "a");
  EXPECT_EQ(format_rfc3339(credential->expires), "2030-01-02T03:04:05Z");
}

TEST(ExecCredential, AC28_RefusesEverythingElseWithoutQuotingIt) {
  const std::string head = R"({"kind":"ExecCredential","apiVersion":"v")";
  for (const std::string& text : {
           std::string(),
           std::string("CANARY"),
           std::string("[]"),
           R"({"kind":"CANARY"})" + head,
           std::string(R"({"kind":"ExecCredential","apiVersion":"CANARY","status":{"token":"a"}})"),
           head + "}",
           head + R"(,"status":"CANARY"})",
           head + R"(,"status":{"token":5}})",
           head + R"(,"status":{"token":"CANARY\r\nX: y"}})",
           head + R"(,"status":{"token":"a","expirationTimestamp":"CANARY"}})",
           head + R"(,"status":{"clientCertificateData":"CANARY"}})",
           head + R"(,"status":{"token":"CANARY","clientKeyData":"CANARY"}})",
       }) {
    const auto credential = parse_exec_credential(text, "v");
    ASSERT_FALSE(credential) << text;
    EXPECT_THAT(credential.error().message, Not(HasSubstr("CANARY")));
  }
}

TEST(ExecCredential, ReadsAClientCertificate) {
  const auto credential = parse_exec_credential(
      R"({"kind":"ExecCredential","apiVersion":"v",
          "status":{"clientCertificateData":"c","clientKeyData":"k"}})",
      "v");
  ASSERT_TRUE(credential) << credential.error().message;
  EXPECT_TRUE(credential->token.empty());
  EXPECT_EQ(credential->certificate.certificate_pem, "c");
  EXPECT_EQ(credential->certificate.key_pem.reveal(), "k");
}

TEST(ExecInfo, TellsOfTheClusterOnlyWhenAsked) {
  ClusterConfig config;
  config.server = *http::parse_url("https://api.example:6443/k8s");
  config.tls.ca_pem = "PEM";
  config.tls.server_name = "inner";
  config.exec = ExecPlugin{};
  config.exec->api_version = "v";
  config.exec->cluster_settings = R"({"audience":"shop","nested":[1,true]})";
  const auto spec = [&] {
    const auto info = exec_info(config);
    EXPECT_TRUE(info);
    return nlohmann::json::parse(info.value_or("{}"))["spec"];
  };
  EXPECT_EQ(spec(), nlohmann::json::parse(R"({"interactive":false})"));
  config.exec->provide_cluster_info = true;
  EXPECT_EQ(spec(), nlohmann::json::parse(R"({"interactive":false,"cluster":{
      "server":"https://api.example:6443/k8s","tls-server-name":"inner",
      "certificate-authority-data":"UEVN","config":{"audience":"shop","nested":[1,true]}}})"));
}

}  // namespace
}  // namespace gitops::k8s
