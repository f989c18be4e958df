#include "k8s-client/cluster_secret.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"

namespace gitops::k8s {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ClusterSecret parse(const json& config, const json& more = json::object()) {
  json data = {
      {"name", "prod"}, {"server", "https://prod.example.com:6443/"}, {"config", config.dump()}};
  data.merge_patch(more);
  for (auto& [key, value] : data.items()) value = base64_encode(value.get<std::string>());
  return parse_cluster_secret(json{{"kind", "Secret"}, {"data", data}}.dump());
}

std::string mistake(const json& config, const json& more = json::object()) {
  const auto secret = parse(config, more);
  return secret.config ? std::string() : secret.config.error().message;
}

TEST(ClusterSecret, ATokenAndACaAreRead) {
  const auto secret = parse({{"bearerToken", "canary"},
                             {"tlsClientConfig",
                              {{"insecure", false},
                               {"serverName", "inside.example.com"},
                               {"caData", base64_encode(std::string("PEM"))}}}});
  ASSERT_TRUE(secret.config) << secret.config.error().message;
  EXPECT_EQ(secret.name, "prod");
  EXPECT_EQ(secret.server, "https://prod.example.com:6443");
  EXPECT_THAT(secret.namespaces, IsEmpty());
  EXPECT_EQ(secret.config->server.to_string(), "https://prod.example.com:6443");
  EXPECT_EQ(secret.config->token.reveal(), "canary");
  EXPECT_EQ(secret.config->tls.ca_pem, "PEM");
  EXPECT_EQ(secret.config->tls.server_name, "inside.example.com");
  EXPECT_FALSE(secret.config->tls.insecure_skip_verify);
}

TEST(ClusterSecret, OtherCredentialsAreRead) {
  const auto certificate = parse({{"tlsClientConfig",
                                   {{"insecure", true},
                                    {"certData", base64_encode(std::string("CERT"))},
                                    {"keyData", base64_encode(std::string("KEY"))}}},
                                  {"awsAuthConfig", nullptr},
                                  {"proxyUrl", "http://proxy.example.com:3128"}});
  ASSERT_TRUE(certificate.config) << certificate.config.error().message;
  EXPECT_TRUE(certificate.config->tls.insecure_skip_verify);
  EXPECT_EQ(certificate.config->tls.certificate_pem, "CERT");
  EXPECT_EQ(certificate.config->tls.key_pem.reveal(), "KEY");
  ASSERT_TRUE(certificate.config->proxy);
  EXPECT_EQ(certificate.config->proxy->host, "proxy.example.com");
  const auto basic = parse({{"username", "me"}, {"password", "canary"}});
  ASSERT_TRUE(basic.config);
  EXPECT_EQ(basic.config->username, "me");
  EXPECT_EQ(basic.config->password.reveal(), "canary");
  EXPECT_TRUE(parse(json::object()).config) << "nobody's credentials";
}

TEST(ClusterSecret, TheProxyMayBeOneOfSocks) {
  const auto read = parse({{"proxyUrl", "socks5://u:p@jump"}});
  ASSERT_TRUE(read.config->proxy);
  EXPECT_TRUE(read.config->proxy->is_socks());
  EXPECT_THAT(mistake({{"proxyUrl", "https://u:canary@jump"}}),
              AllOf(HasSubstr("proxyUrl is not"), Not(HasSubstr("canary"))));
}

TEST(ClusterSecret, ItsNamespacesAreTheOnlyOnes) {
  EXPECT_THAT(parse(json::object(), {{"namespaces", " a, b ,,a"}}).namespaces,
              ElementsAre("a", "b"));
}

TEST(ClusterSecret, AC30_ProgramsAndCloudsAreRefusedWithTheirName) {
  EXPECT_THAT(mistake({{"execProviderConfig", {{"command", "sh"}, {"args", {"canary"}}}}}),
              HasSubstr("execProviderConfig"));
  EXPECT_THAT(mistake({{"awsAuthConfig", {{"clusterName", "x"}}}}), HasSubstr("awsAuthConfig"));
  const auto secret = parse({{"execProviderConfig", {{"command", "sh"}}}});
  EXPECT_EQ(secret.server, "https://prod.example.com:6443") << "it is still known whose it is";
}

TEST(ClusterSecret, MistakesAreToldWithoutWhatTheSecretHolds) {
  const std::string all =
      mistake({{"bearerToken", "canary\r\nX: y"}}) + mistake({{"bearerToken", {{"canary", 1}}}}) +
      mistake({{"username", "can:ary"}}) + mistake({{"username", "u"}, {"bearerToken", "canary"}}) +
      mistake({{"tlsClientConfig", {{"caData", "?canary"}}}}) +
      mistake({{"tlsClientConfig", {{"insecure", "canary"}}}}) +
      mistake({{"tlsClientConfig", "canary"}}) +
      mistake({{"tlsClientConfig", {{"keyData", base64_encode(std::string("canary"))}}}}) +
      mistake({{"proxyUrl", "canary://u:canary@x"}}) + mistake(json::array({"canary"})) +
      mistake({}, {{"config", "canary"}}) + mistake({}, {{"server", "ftp://canary"}}) +
      mistake({}, {{"server", "https://canary:canary@x"}}) + mistake({}, {{"server", ""}});
  EXPECT_THAT(all, Not(HasSubstr("canary")));
  for (const auto* part : {"bearerToken", "username", "caData", "insecure", "tlsClientConfig",
                           "certData and keyData", "proxyUrl", "config", "server"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
  EXPECT_NE(mistake({{"tlsClientConfig",
                      {{"insecure", true}, {"caData", base64_encode(std::string("PEM"))}}}}),
            "");
}

TEST(ClusterSecret, WhatIsNoSecretIsRefused) {
  for (const auto* text : {"", "nonsense", "{}", R"({"data":7})", R"({"data":{"server":7}})"}) {
    const auto secret = parse_cluster_secret(text);
    EXPECT_FALSE(secret.config) << text;
    EXPECT_EQ(secret.server, "") << text;
  }
}

TEST(ClusterSecret, ANameIsFitForALogAndALabel) {
  EXPECT_EQ(parse(json::object(), {{"name", "a\n\xffz"}}).name, "a??z");
  EXPECT_EQ(parse(json::object(), {{"name", std::string(1000, 'x')}}).name.size(), 128U);
  EXPECT_EQ(parse(json::object(), {{"name", nullptr}}).name, "https://prod.example.com:6443");
}

TEST(ClusterSecret, OurOwnClusterIsKnownByItsNames) {
  const auto own = *http::parse_url("https://10.0.0.1:443");
  for (const auto* server :
       {"https://kubernetes.default.svc", "https://kubernetes.default.svc:443/", "https://10.0.0.1",
        "https://kubernetes.default.svc.cluster.local"}) {
    EXPECT_TRUE(is_own_cluster(server, own)) << server;
  }
  for (const auto* server : {"https://10.0.0.1:6443", "https://prod.example.com", "nonsense"}) {
    EXPECT_FALSE(is_own_cluster(server, own)) << server;
  }
  const auto behind_a_proxy = http::parse_url("https://rancher.example.com/k8s/clusters/local");
  ASSERT_TRUE(behind_a_proxy);
  EXPECT_TRUE(is_own_cluster("https://rancher.example.com/k8s/clusters/local/", *behind_a_proxy));
  EXPECT_FALSE(is_own_cluster("https://rancher.example.com/k8s/clusters/c-1", *behind_a_proxy));
  EXPECT_FALSE(is_own_cluster("https://rancher.example.com", *behind_a_proxy));
}

}  // namespace
}  // namespace gitops::k8s
