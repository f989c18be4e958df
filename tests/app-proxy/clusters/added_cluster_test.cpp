#include "app-proxy/clusters/added_cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "k8s-client/cluster_secret.hpp"

namespace gitops::app_proxy {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

// As `kubectl config view --minify --flatten --output json` prints it in the Job.
Json kubeconfig() {
  return {{"kind", "Config"},
          {"apiVersion", "v1"},
          {"preferences", Json::object()},
          {"clusters",
           {{{"name", "edge"},
             {"cluster",
              {{"server", "https://edge.example.test:6443/"},
               {"certificate-authority-data", base64_encode("-----BEGIN CERTIFICATE-----\n")}}}}}},
          {"users", {{{"name", "edge"}, {"user", {{"token", "canary-token"}}}}}},
          {"contexts", {{{"name", "edge"}, {"context", {{"cluster", "edge"}, {"user", "edge"}}}}}},
          {"current-context", "edge"}};
}

std::string body_of(const Json& config, Json more = Json::object()) {
  Json body{{"name", "edge"},
            {"kubeConfig", base64_encode(config.dump())},
            {"annotations", ""},
            {"labels", ""}};
  body.update(more);
  return body.dump();
}

Result<AddedCluster> parse(const std::string& body) {
  return parse_added_cluster(body, {});
}

std::string refusal(const std::string& body) {
  const auto added = parse(body);
  if (added) return "accepted";
  EXPECT_EQ(added.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(added.error().message, Not(HasSubstr("canary")));
  return added.error().message;
}

// One change of the kubeconfig.
std::string with(const char* pointer, Json value) {
  auto config = kubeconfig();
  config[Json::json_pointer(pointer)] = std::move(value);
  return body_of(config);
}
std::string at(const std::string& server) {
  return with("/clusters/0/cluster/server", server);
}

TEST(AddedCluster, TheJobsRequestBecomesASecretOfArgoCd) {
  const auto added =
      parse(body_of(kubeconfig(), {{"labels", base64_encode("env: prod\nteam/owner: \"7\"\n")},
                                   {"annotations", base64_encode("note: \"two words\"\n")}}));
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(added->server, "https://edge.example.test:6443");
  const auto object = Json::parse(cluster_secret_object("runtime", *added).reveal());
  EXPECT_EQ(
      object["metadata"],
      (Json{{"name", "cluster-edge.example.test-3893669828"},
            {"namespace", "runtime"},
            {"labels",
             {{"argocd.argoproj.io/secret-type", "cluster"}, {"env", "prod"}, {"team/owner", "7"}}},
            {"annotations", {{"managed-by", "argocd.argoproj.io"}, {"note", "two words"}}}}));
  const auto config =
      Json::parse(base64_decode(object["data"]["config"].get<std::string>()).value());
  EXPECT_EQ(
      config,
      (Json{{"bearerToken", "canary-token"},
            {"tlsClientConfig",
             {{"insecure", false}, {"caData", base64_encode("-----BEGIN CERTIFICATE-----\n")}}}}));
  // What the event-reporter reads of it.
  const auto read = k8s::parse_cluster_secret(object.dump());
  EXPECT_EQ(read.name, "edge");
  EXPECT_EQ(read.server, "https://edge.example.test:6443");
  EXPECT_TRUE(read.config);
}

TEST(AddedCluster, AnotherRequestChangesTheSecretAndKeepsTheRest) {
  const auto added = parse(with("/clusters/0/cluster", {{"server", "https://new.example.test"},
                                                        {"insecure-skip-tls-verify", true}}));
  ASSERT_TRUE(added) << added.error().message;
  const Json before{{"metadata",
                     {{"name", "cluster-old"},
                      {"resourceVersion", "7"},
                      {"labels", {{"mine", "stays"}}},
                      {"managedFields", Json::array()}}},
                    {"data",
                     {{"name", base64_encode("edge")},
                      {"server", base64_encode("https://edge.example.test/")},
                      {"namespaces", base64_encode("a,b")}}}};
  const auto known = parse_known_clusters(Json{{"items", {before, Json::array()}}}.dump());
  ASSERT_TRUE(known);
  ASSERT_EQ(known->size(), 1U);
  EXPECT_EQ(known->at(0).server, "https://edge.example.test");
  // What is no list does not tell that there are none.
  for (const char* text : {"", "<html>", "{}", R"({"items":{}})"}) {
    EXPECT_FALSE(parse_known_clusters(text)) << text;
  }
  EXPECT_TRUE(parse_known_clusters(R"({"items":[]})")->empty());
  const auto replaced = replaced_by(*added, *known);
  ASSERT_TRUE(replaced && *replaced);
  const auto object =
      Json::parse(cluster_secret_object("runtime", *added, (*replaced)->object).reveal());
  EXPECT_EQ(object["metadata"]["name"], "cluster-old");
  EXPECT_EQ(object["metadata"]["resourceVersion"], "7");
  EXPECT_EQ(object["metadata"]["labels"]["mine"], "stays");
  EXPECT_FALSE(object["metadata"].contains("managedFields"));
  EXPECT_EQ(object["data"]["namespaces"], base64_encode("a,b"));
  EXPECT_EQ(object["data"]["server"], base64_encode("https://new.example.test"));

  const auto other = [](const char* name, const char* server) {
    return KnownCluster{.secret = name, .name = name, .server = server, .object = "{}"};
  };
  EXPECT_EQ(*replaced_by(*added, {other("other", "https://other.example.test")}), std::nullopt);
  EXPECT_EQ((*replaced_by(*added, {other("x", "https://new.example.test")}))->secret, "x");
  EXPECT_EQ(replaced_by(*added, {other("x", "https://new.example.test"),
                                 other("edge", "https://edge.example.test")})
                .error()
                .code,
            ErrorCode::conflict);
}

// Argo CD's own examples: argo-cd, util/db/secrets_test.go.
TEST(AddedCluster, SecretsAreNamedAsArgoCdNamesThem) {
  EXPECT_EQ(cluster_secret_name("http://foo"), "cluster-foo-752281925");
  EXPECT_EQ(cluster_secret_name("http://[fe80::1ff:fe23:4567:890a]:8000"),
            "cluster-fe80--1ff-fe23-4567-890a-664858999");
}

// AC-30: nothing is run, and no file of ours is read.
TEST(AddedCluster, AC30_CredentialsThatAreNotInTheRequestAreRefused) {
  EXPECT_THAT(refusal(with("/users/0/user", {{"exec",
                                              {{"apiVersion", "client.authentication.k8s.io/v1"},
                                               {"command", "/bin/canary"}}}})),
              HasSubstr("names a program to run"));
  EXPECT_THAT(refusal(with("/users/0/user", {{"auth-provider", {{"name", "gcp"}}}})),
              HasSubstr("auth-provider"));
  for (const char* file : {"tokenFile", "client-key"}) {
    Json user{{"token", "canary-token"}};
    user[file] = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    if (std::string_view(file) == "client-key") user["client-certificate"] = "/c";
    EXPECT_THAT(refusal(with("/users/0/user", user)), HasSubstr("names files")) << file;
  }
  EXPECT_THAT(refusal(with("/clusters/0/cluster", {{"server", "https://edge.example.test"},
                                                   {"certificate-authority", "/etc/passwd"}})),
              HasSubstr("names files"));
  EXPECT_THAT(refusal(with("/clusters/0/cluster/proxy-url", "http://canary.example.test")),
              HasSubstr("proxy-url"));
  EXPECT_THAT(refusal(with("/users/0/user", Json::object())), HasSubstr("neither a token"));
  EXPECT_THAT(refusal(with("/users/0/user/as", "system:admin")), HasSubstr("impersonation"));
}

// AC-02: Argo CD would connect to these.
TEST(AddedCluster, AC02_ServersAtSpecialAddressesAreRefused) {
  for (const char* server : {"https://169.254.169.254", "https://169.254.169.254:443/latest",
                             "https://127.0.0.1:6443", "https://[::1]", "https://[fe80::1]",
                             "https://[::ffff:169.254.169.254]", "https://[fd00:ec2::254]",
                             "https://0.0.0.0", "https://localhost:6443", "https://x.localhost"}) {
    EXPECT_THAT(refusal(at(server)), HasSubstr("no cluster is at")) << server;
  }
  // Some programs read these as addresses.
  for (const char* server :
       {"https://2852039166", "https://0xa9fea9fe", "https://127.1", "https://0x7f.0.0.0x1",
        "https://169.254.43518", "https://0251.0376.0251.0376"}) {
    EXPECT_THAT(refusal(at(server)), HasSubstr("is not an https")) << server;
  }
  EXPECT_THAT(refusal(at("http://edge.example.test")), HasSubstr("https"));
  EXPECT_THAT(refusal(at("https://user:canary@edge.example.test")), HasSubstr("user name"));
  EXPECT_THAT(refusal(at("file:///etc/passwd")), HasSubstr("server"));
  EXPECT_EQ(refusal(at("https://10.0.0.7:6443")), "accepted");
  EXPECT_EQ(refusal(at("https://[fd00::7]:6443")), "accepted");

  const auto allowed = net::AddressList::parse({"127.0.0.0/8"});
  EXPECT_TRUE(parse_added_cluster(at("https://127.0.0.1:6443"), *allowed));
  EXPECT_FALSE(parse_added_cluster(at("https://169.254.169.254"), *allowed));
}

TEST(AddedCluster, MalformedRequestsAreRefused) {
  EXPECT_EQ(refusal("["), "the body is not a JSON object");
  EXPECT_EQ(refusal("{}"), "name is missing");
  for (const char* name : {"", "-a", "1a", "A", "a/b", "in-cluster", "a..b"}) {
    EXPECT_THAT(refusal(body_of(kubeconfig(), {{"name", name}})), HasSubstr("name")) << name;
  }
  EXPECT_THAT(refusal(body_of(kubeconfig(), {{"name", "other"}})), HasSubstr("no context named"));
  EXPECT_EQ(refusal(body_of(kubeconfig(), {{"kubeConfig", ""}})), "kubeConfig is missing");
  EXPECT_EQ(refusal(body_of(kubeconfig(), {{"kubeConfig", 7}})), "kubeConfig must be a text");
  EXPECT_EQ(refusal(body_of(kubeconfig(), {{"kubeConfig", "%%%"}})), "kubeConfig is not base64");
  EXPECT_EQ(
      refusal(body_of(kubeconfig(), {{"kubeConfig", base64_encode(std::string(300'000, ' '))}})),
      "kubeConfig is too large");
  const auto labels = [](const std::string& yaml) {
    return refusal(body_of(kubeconfig(), {{"labels", base64_encode(yaml)}}));
  };
  EXPECT_THAT(labels("a: {b: c}"), HasSubstr("expected a map"));
  EXPECT_THAT(labels("- a\n"), HasSubstr("expected a map"));
  EXPECT_THAT(labels("a: \"two words\"\n"), HasSubstr("not one of Kubernetes"));
  EXPECT_THAT(labels("\"a b\": c\n"), HasSubstr("not one of Kubernetes"));
  EXPECT_THAT(labels("argocd.argoproj.io/secret-type: repository\n"), HasSubstr("by the runtime"));
  EXPECT_THAT(labels("a: &x b\nc: *x\n"), HasSubstr("labels: "));
  std::string many;
  for (int i = 0; i < 101; ++i) many += "k" + std::to_string(i) + ": v\n";
  EXPECT_THAT(labels(many), HasSubstr("too many"));
  EXPECT_EQ(labels("{}\n"), "accepted");
  EXPECT_THAT(refusal(body_of(kubeconfig(), {{"annotations", base64_encode("managed-by: me")}})),
              HasSubstr("by the runtime"));
}

}  // namespace
}  // namespace gitops::app_proxy
