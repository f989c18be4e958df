// The account of Argo CD in a cluster, and the request that adds the cluster to a runtime.
#include "gitopsctl/cluster_account.hpp"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "gitopsctl/failure.hpp"

namespace gitops::ctl {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kAuthority = "-----BEGIN CERTIFICATE-----\n";

AddedCluster cluster() {
  return {.name = "east",
          .server = "https://east.example.test:6443",
          .tls = {.ca_pem = kAuthority},
          .token = Secret("canary-token"),
          .labels = {{"env", "prod"}, {"tier", "1"}},
          .annotations = Json::object()};
}

Json body_of(const AddedCluster& added) {
  return parse_json_object(add_request(added).reveal());
}

// Reads the kubeconfig as app-proxy does.
k8s::ClusterConfig config_of(const Json& body) {
  auto config = k8s::kubeconfig_from_text(
      {{.path = "kubeConfig", .text = base64_decode(string_at(body, {"kubeConfig"})).value()}},
      string_at(body, {"name"}), k8s::ExecPolicy::refuse);
  if (!config) throw std::runtime_error(config.error().message);
  return *config;
}

TEST(ClusterAccount, TheRequestHoldsAKubeconfigOfOneContextWithItsName) {
  const Json body = body_of(cluster());
  EXPECT_EQ(string_at(body, {"name"}), "east");
  const auto config = config_of(body);
  EXPECT_EQ(config.server.to_string(), "https://east.example.test:6443");
  EXPECT_EQ(config.tls.ca_pem, kAuthority);
  EXPECT_FALSE(config.tls.insecure_skip_verify);
  EXPECT_EQ(config.token.reveal(), "canary-token");
  EXPECT_EQ(base64_decode(string_at(body, {"labels"})).value(), "env: prod\ntier: \"1\"\n");
  EXPECT_EQ(string_at(body, {"annotations"}), "");
}

TEST(ClusterAccount, WithoutValidationNoAuthorityIsSent) {
  auto added = cluster();
  added.tls.insecure_skip_verify = true;
  added.tls.server_name = "api.example.test";
  const auto config = config_of(body_of(added));
  EXPECT_TRUE(config.tls.insecure_skip_verify);
  EXPECT_EQ(config.tls.ca_pem, "");
  EXPECT_EQ(config.tls.server_name, "api.example.test");
}

TEST(ClusterAccount, TheObjectsAreThoseOfArgoCd) {
  const auto objects = account_objects("ops");
  const auto text = manifests_text(objects);
  EXPECT_THAT(text, AllOf(HasSubstr("kind: ServiceAccount\n"), HasSubstr("kind: ClusterRole\n"),
                          HasSubstr("kind: ClusterRoleBinding\n"), HasSubstr("kind: Secret\n"),
                          HasSubstr("name: argocd-manager\n"), HasSubstr("namespace: ops\n"),
                          HasSubstr("type: kubernetes.io/service-account-token\n"),
                          Not(HasSubstr("kube-system"))));
  for (const auto& object : objects) {
    EXPECT_EQ(string_at(object.object, {"metadata", "name"}), object.key.name);
    EXPECT_EQ(string_at(object.object, {"metadata", "namespace"}), object.key.ns);
    EXPECT_EQ(string_at(object.object, {"apiVersion"}), object.resource.api_version());
  }
}

TEST(ClusterAccount, ATokenIsThereOnceTheClusterHasFilledItIn) {
  EXPECT_EQ(token_of(R"({"kind":"Secret","metadata":{}})").value(), std::nullopt);
  EXPECT_EQ(token_of(R"({"kind":"Secret","data":{"ca.crt":"eA=="}})").value(), std::nullopt);
  EXPECT_EQ(token_of(R"({"kind":"Secret","data":{"token":"dC0x"}})").value()->reveal(), "t-1");
  for (const char* text : {"", "{}", R"({"kind":"Status"})", "<html>"}) {
    EXPECT_EQ(token_of(text).error().code, ErrorCode::protocol) << text;
  }
  const auto broken = token_of(R"({"kind":"Secret","data":{"token":"canary!"}})");
  EXPECT_THAT(broken.error().message, Not(HasSubstr("canary")));
}

TEST(ClusterAccount, NamesAreThoseThatAppProxyTakes) {
  for (const std::string& name : {std::string("a"), std::string("east-1"), std::string(63, 'a')}) {
    EXPECT_EQ(cluster_name_mistake(name), "") << name;
  }
  for (const std::string& name :
       {std::string(), std::string("1a"), std::string("-a"), std::string("a-"), std::string("East"),
        std::string("a_b"), std::string("a.b"), std::string("a\n"), std::string(64, 'a')}) {
    EXPECT_NE(cluster_name_mistake(name), "") << name;
  }
}

TEST(ClusterAccount, LabelsAreKeysWithValues) {
  EXPECT_EQ(key_values("labels", {"a=1", "b/c=x=y", "d="}).value(),
            (Json{{"a", "1"}, {"b/c", "x=y"}, {"d", ""}}));
  EXPECT_EQ(key_values("labels", {}).value(), Json::object());
  for (const std::vector<std::string>& items :
       std::vector<std::vector<std::string>>{{"a"}, {"=1"}, {"a=1", "a=2"}}) {
    const auto mistake = key_values("labels", items);
    ASSERT_FALSE(mistake) << items[0];
    EXPECT_EQ(mistake.error().subcode, kUsage);
    EXPECT_THAT(mistake.error().message, HasSubstr("--labels"));
  }
}

}  // namespace
}  // namespace gitops::ctl
