#include "event-reporter/event/manifest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops::reporter {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Manifest, AC28_UnmaskedSecretsAreMasked) {
  const std::string secret =
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","annotations":{)"
      R"("kubectl.kubernetes.io/last-applied-configuration":)"
      R"("{\"kind\":\"Secret\",\"data\":{\"a\":\"Y2FuYXJ5LTE=\"}}"}},)"
      R"("data":{"a":"Y2FuYXJ5LTE=","b":"+++++","c":""},"stringData":{"d":"canary-2","n":7}})";
  const auto masked = json::parse(mask_secret(secret));
  EXPECT_EQ(masked["data"], (json{{"a", "++++++++"}, {"b", "+++++"}, {"c", ""}}));
  EXPECT_EQ(masked["stringData"], (json{{"d", "++++++++"}, {"n", "++++++++"}}));
  EXPECT_THAT(masked.dump(), Not(HasSubstr("Y2FuYXJ5")));
  EXPECT_THAT(masked.dump(), Not(HasSubstr("canary")));
  EXPECT_EQ(masked["metadata"]["name"], "s");

  const std::string broken = R"({"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{)"
                             R"("kubectl.kubernetes.io/last-applied-configuration":"canary"}}})";
  EXPECT_THAT(mask_secret(broken), Not(HasSubstr("canary")));

  for (const std::string other :
       {R"({"apiVersion":"v1","kind":"ConfigMap","data":{"a":"x"}})",
        R"({"apiVersion":"other/v1","kind":"Secret","data":{"a":"x"}})",
        R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}})",
        R"({"apiVersion":"v1","kind":"Secret","data":null,"stringData":{}})", ""}) {
    EXPECT_EQ(mask_secret(other), other);
  }
}

TEST(Manifest, AStubHasWhatIsKnown) {
  EXPECT_EQ(
      stub({"apps", "v1", "Deployment", "ns", "n"}),
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"n","namespace":"ns"}})");
  EXPECT_EQ(stub({"", "v1", "Namespace", "", "n"}),
            R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}})");
  const auto application = json::parse(application_stub({.ns = "ns", .name = "n"}, "u", "7"));
  EXPECT_EQ(application["apiVersion"], "argoproj.io/v1alpha1");
  EXPECT_EQ(application["kind"], "Application");
  EXPECT_EQ(application["metadata"],
            (json{{"name", "n"}, {"namespace", "ns"}, {"uid", "u"}, {"resourceVersion", "7"}}));
}

TEST(Manifest, TheNamespaceOfAnObjectInTheClusterIsAdded) {
  EXPECT_EQ(with_namespace(R"({"kind":"X","metadata":{ "name":"n"}})", "ns"),
            R"({"kind":"X","metadata":{"namespace":"ns", "name":"n"}})");
  EXPECT_EQ(with_namespace(R"({"metadata":{"name":"n"}})", ""), R"({"metadata":{"name":"n"}})");
}

}  // namespace
}  // namespace gitops::reporter
