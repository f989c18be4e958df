#include "event-reporter/event/read_plan.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "event-reporter/event/golden_case.hpp"

namespace gitops::reporter {
namespace {

using nlohmann::json;

json application() {
  return golden_case("resource")["application"];
}

json app_with(const json& metadata) {
  auto app = application();
  app["metadata"].merge_patch(metadata);
  return app;
}

std::optional<std::string> parent(const json& app, TrackingSettings settings) {
  settings.argocd_namespace = "argocd";
  const auto plan = plan_reads(AppView::parse(app.dump()).value(), settings);
  if (!plan.parent) return std::nullopt;
  return plan.parent->to_string();
}

// "group kind namespace name" of each.
std::vector<std::string> split(const argo::ObjectFilter& only,
                               const std::vector<ResourceId>& resources) {
  std::vector<std::string> out;
  for (const auto& part : split_read(only, resources)) {
    out.push_back(part.group + " " + part.kind + " " + part.ns + " " + part.name);
  }
  return out;
}

TEST(ReadPlan, ALargeReadIsSplitByKindThenByNamespaceThenByName) {
  const std::vector<ResourceId> resources = {
      {"", "v1", "ConfigMap", "shop", "a"},      {"", "v1", "ConfigMap", "shop", "b"},
      {"", "v1", "ConfigMap", "team", "a"},      {"apps", "v1", "Deployment", "shop", "web"},
      {"apps", "v1", "Deployment", "shop", "x"}, {"", "v1", "Namespace", "", "shop"},
      {"", "v1", "Namespace", "", "team"},       application_id("argocd", "child")};
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split({}, resources), (Parts{" ConfigMap  ", " Namespace  ", "apps Deployment  "}));
  EXPECT_EQ(split({.kind = "ConfigMap"}, resources),
            (Parts{" ConfigMap shop ", " ConfigMap team "}));
  EXPECT_EQ(split({.kind = "ConfigMap", .ns = "shop"}, resources),
            (Parts{" ConfigMap shop a", " ConfigMap shop b"}));
  EXPECT_EQ(split({.group = "apps", .kind = "Deployment"}, resources),
            (Parts{"apps Deployment shop web", "apps Deployment shop x"}))
      << "all of one namespace";
  EXPECT_EQ(split({.kind = "Namespace"}, resources),
            (Parts{" Namespace  shop", " Namespace  team"}));
  EXPECT_EQ(split({.kind = "ConfigMap", .ns = "shop", .name = "a"}, resources), Parts{});
  const std::vector<ResourceId> many = [] {
    std::vector<ResourceId> out;
    for (int i = 0; i < 201; ++i) out.push_back({"", "v1", "Secret", "shop", std::to_string(i)});
    return out;
  }();
  EXPECT_EQ(split({}, many), Parts{" Secret  "});
  EXPECT_EQ(split({.kind = "Secret"}, many), Parts{});
}

TEST(ReadPlan, ParentComesFromTheTrackingMark) {
  const auto by_label = app_with({{"labels", {{"app.kubernetes.io/instance", "apps"}}}});
  const auto by_annotation = app_with(
      {{"annotations",
        {{"argocd.argoproj.io/tracking-id", "apps:argoproj.io/Application:argocd/guestbook"}}}});
  EXPECT_EQ(parent(by_label, {.method = "label"}), "argocd/apps");
  EXPECT_EQ(parent(by_label, {.method = "annotation"}), std::nullopt);
  EXPECT_EQ(parent(by_annotation, {.method = "annotation"}), "argocd/apps");
  EXPECT_EQ(parent(by_annotation, {.method = "annotation+label"}), "argocd/apps");
  EXPECT_EQ(parent(by_annotation, {.method = "label"}), std::nullopt);
  EXPECT_EQ(parent(app_with(json::object()), {.method = "annotation"}), std::nullopt);
}

TEST(ReadPlan, ParentMayLiveInAnotherNamespace) {
  const auto app = app_with({{"labels", {{"app.kubernetes.io/instance", "team_apps"}}}});
  EXPECT_EQ(parent(app, {.method = "label"}), "team/apps");
}

TEST(ReadPlan, AMarkOfAnotherInstallationIsNotOurs) {
  const json annotations = {{"argocd.argoproj.io/tracking-id", "apps:a/B:c/d"},
                            {"argocd.argoproj.io/installation-id", "east"}};
  const auto app = app_with({{"annotations", annotations}});
  EXPECT_EQ(parent(app, {.method = "annotation", .installation_id = "east"}), "argocd/apps");
  EXPECT_EQ(parent(app, {.method = "annotation", .installation_id = "west"}), std::nullopt);
}

TEST(ReadPlan, AnApplicationIsNotItsOwnParent) {
  const auto app = app_with(
      {{"namespace", "argocd"}, {"labels", {{"app.kubernetes.io/instance", "guestbook"}}}});
  EXPECT_EQ(parent(app, {.method = "label"}), std::nullopt);
}

TEST(ReadPlan, RevisionsComeFromTheLastOperationThenTheNextThenTheStatus) {
  auto app = application();
  app["status"]["operationState"]["operation"]["sync"] = {{"revision", "last"}};
  app["operation"]["sync"] = {{"revision", "next"}};
  app["status"]["sync"]["revision"] = "status";
  const auto first = [&app] {
    const auto plan = plan_reads(AppView::parse(app.dump()).value(), {});
    return plan.sync_revisions.empty() ? "" : plan.sync_revisions[0].revision;
  };
  EXPECT_EQ(first(), "last");
  app["status"].erase("operationState");
  EXPECT_EQ(first(), "next");
  app.erase("operation");
  EXPECT_EQ(first(), "status");
  app["status"].erase("sync");
  EXPECT_EQ(first(), "");
}

TEST(ReadPlan, HelmSourcesAreNotAsked) {
  auto app = application();
  app["spec"].erase("source");
  app["spec"]["sources"] = {{{"repoURL", "https://charts"}, {"chart", "nginx"}},
                            {{"repoURL", "https://git"}, {"path", "."}}};
  app["status"]["operationState"]["operation"]["sync"] = {{"revisions", {"1.2.3", "abc"}}};
  const auto plan = plan_reads(AppView::parse(app.dump()).value(), {});
  ASSERT_EQ(plan.sync_revisions.size(), 2U);
  EXPECT_FALSE(plan.sync_revisions[0].has_metadata);
  EXPECT_TRUE(plan.sync_revisions[1].has_metadata);
  EXPECT_EQ(plan.sync_revisions[1].source_index, 1);
  EXPECT_EQ(plan.sync_revisions[1].repo_url, "https://git");
}

}  // namespace
}  // namespace gitops::reporter
