#include "k8s-client/discovery.hpp"

#include <gmock/gmock.h>

namespace gitops::k8s {
namespace {

using Answer = Discovery::Answer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Resource kWidgets{"example.com", "v1", "widgets", "Widget", true};
const Resource kMetrics{"metrics.k8s.io", "v1beta1", "pods", "PodMetrics", true};

constexpr std::string_view kAggregated = R"({
  "kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},
  "items":[
    {"metadata":{"name":"apps","creationTimestamp":null},"versions":[
      {"version":"v1","freshness":"Current","resources":[
        {"resource":"deployments","responseKind":{"group":"apps","version":"v1","kind":"Deployment"},
         "scope":"Namespaced","singularResource":"deployment","verbs":["get","list"],
         "shortNames":["deploy"],"categories":["all"],
         "subresources":[{"subresource":"scale","verbs":["get"]},{"subresource":"status"}]}]}]},
    {"metadata":{"name":"example.com"},"versions":[
      {"version":"v2","freshness":"Current","resources":[
        {"resource":"widgets","responseKind":{"kind":"Widget"},"scope":"Cluster"}]},
      {"version":"v1","freshness":"Current","resources":[
        {"resource":"widgets","responseKind":{"kind":"Widget"},"scope":"Namespaced"}]}]},
    {"metadata":{"name":"metrics.k8s.io"},"versions":[
      {"version":"v1beta1","freshness":"Stale"}]}]})";

Discovery aggregated() {
  Discovery discovery;
  EXPECT_TRUE(discovery.add_aggregated(kAggregated));
  return discovery;
}

TEST(Discovery, ReadsWhatAnAggregatedAnswerSaysOfAType) {
  const Discovery discovery = aggregated();
  const ApiResource* deployments = discovery.find_kind("apps", "Deployment");
  ASSERT_NE(deployments, nullptr);
  EXPECT_EQ(deployments->resource.api_version(), "apps/v1");
  EXPECT_EQ(deployments->resource.plural, "deployments");
  EXPECT_TRUE(deployments->resource.namespaced);
  EXPECT_EQ(deployments->singular, "deployment");
  EXPECT_THAT(deployments->verbs, ElementsAre("get", "list"));
  EXPECT_THAT(deployments->short_names, ElementsAre("deploy"));
  EXPECT_THAT(deployments->subresources, ElementsAre("scale", "status"));
}

TEST(Discovery, PrefersTheVersionThatTheServerNamesFirst) {
  const Discovery discovery = aggregated();
  EXPECT_THAT(discovery.versions("example.com"), ElementsAre("v2", "v1"));
  const ApiResource* widgets = discovery.find_kind("example.com", "Widget");
  ASSERT_NE(widgets, nullptr);
  EXPECT_EQ(widgets->resource.version, "v2");
  EXPECT_FALSE(widgets->resource.namespaced);
  EXPECT_EQ(discovery.find(kWidgets), Answer::served) << "v1 is served, too";
}

TEST(Discovery, TellsAbsentFromNotKnown) {
  const Discovery discovery = aggregated();
  EXPECT_EQ(discovery.find(kMetrics), Answer::not_known) << "its server does not answer now";
  EXPECT_FALSE(discovery.is_known("metrics.k8s.io"));
  EXPECT_THAT(discovery.not_known(), ElementsAre("metrics.k8s.io/v1beta1"));
  EXPECT_TRUE(discovery.is_known("apps"));
  EXPECT_TRUE(discovery.is_known("nowhere.example"));
  EXPECT_EQ(discovery.find({"nowhere.example", "v1", "x", "X", true}), Answer::absent);
  EXPECT_EQ(discovery.find_kind("apps", "Widget"), nullptr);
  EXPECT_THAT(discovery.versions("nowhere.example"), IsEmpty());
}

TEST(Discovery, BelievesAStaleListOfTypesAsFarAsItGoes) {
  Discovery discovery;
  ASSERT_TRUE(discovery.add_aggregated(R"({"kind":"APIGroupDiscoveryList","items":[
    {"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale",
     "resources":[{"resource":"pods","responseKind":{"kind":"PodMetrics"},"scope":"Namespaced"}]}]}
  ]})"));
  EXPECT_EQ(discovery.find(kMetrics), Answer::served);
  EXPECT_EQ(discovery.find({"metrics.k8s.io", "v1beta1", "nodes", "", false}), Answer::not_known);
}

TEST(Discovery, ReadsTheOlderFormGroupByGroup) {
  Discovery discovery;
  EXPECT_FALSE(discovery.add_aggregated(R"({"kind":"APIVersions","versions":["v1"]})"));
  auto rest = discovery.add_groups(R"({"kind":"APIVersions","versions":["v1"]})");
  ASSERT_TRUE(rest);
  ASSERT_EQ(rest->size(), 1U);
  EXPECT_EQ(rest->front().group, "");
  ASSERT_TRUE(discovery.add_resources(rest->front(), R"({"resources":[
    {"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get"]},
    {"name":"pods/log","namespaced":true,"kind":"Pod","verbs":["get"]},
    {"name":"namespaces","namespaced":false,"kind":"Namespace"}]})"));
  const ApiResource* pods = discovery.find_kind("", "Pod");
  ASSERT_NE(pods, nullptr);
  EXPECT_THAT(pods->subresources, ElementsAre("log"));
  EXPECT_TRUE(pods->resource.namespaced);
  EXPECT_FALSE(discovery.find_kind("", "Namespace")->resource.namespaced);

  rest = discovery.add_groups(R"({"kind":"APIGroupList","groups":[{"name":"example.com",
    "versions":[{"version":"v1"},{"version":"v2"}],"preferredVersion":{"version":"v2"}}]})");
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->size(), 2U);
  EXPECT_THAT(discovery.versions("example.com"), ElementsAre("v2", "v1"));
  discovery.set_not_known({"example.com", "v1"});
  EXPECT_EQ(discovery.find(kWidgets), Answer::not_known);
}

TEST(Discovery, RefusesAnswersOfAnotherShape) {
  Discovery discovery;
  for (const std::string_view text : {"", "[]", "{}", R"({"groups":{}})", R"({"versions":"v1"})"}) {
    EXPECT_FALSE(discovery.add_aggregated(text)) << text;
    EXPECT_FALSE(discovery.add_groups(text)) << text;
    EXPECT_FALSE(discovery.add_resources({"", "v1"}, text)) << text;
  }
  EXPECT_TRUE(discovery.add_aggregated(
      R"({"kind":"APIGroupDiscoveryList","items":[5,{},{"versions":[{},{"version":7}]}]})"));
  EXPECT_THAT(discovery.resources(), IsEmpty());
}

}  // namespace
}  // namespace gitops::k8s
