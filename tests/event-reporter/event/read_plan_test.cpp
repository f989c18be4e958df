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

// Anybody can write one. Argo CD writes the name of an Application of its own namespace alone.
TEST(ReadPlan, AMarkThatNamesNoApplicationIsNone) {
  for (const auto* name :
       {"_x", "x_", "_", "team_", "team_a_b", "a/b", "..", "Apps", "-a", "a b"}) {
    const json id = std::string(name) + ":argoproj.io/Application:argocd/guestbook";
    const auto by_annotation =
        app_with({{"annotations", {{"argocd.argoproj.io/tracking-id", id}}}});
    EXPECT_EQ(parent(by_annotation, {.method = "annotation"}), std::nullopt) << name;
    const auto by_label = app_with({{"labels", {{"app.kubernetes.io/instance", name}}}});
    EXPECT_EQ(parent(by_label, {.method = "label"}), std::nullopt) << name;
  }
}

// What an operation asks for may be a branch, and may not have been reached.
TEST(ReadPlan, RevisionsAreThoseOfTheLastSyncElseOfTheLastComparison) {
  auto app = application();
  auto& operation = app["status"]["operationState"];
  operation["operation"]["sync"] = {{"revision", "asked"}};
  operation["syncResult"]["revision"] = "done";
  app["operation"]["sync"] = {{"revision", "next"}};
  app["status"]["sync"]["revision"] = "compared";
  const auto first = [&app] {
    const auto plan = plan_reads(AppView::parse(app.dump()).value(), {});
    return plan.sync_revisions.empty() ? "" : plan.sync_revisions[0].revision;
  };
  EXPECT_EQ(first(), "done");
  // It failed before the revision was resolved.
  for (const auto* unresolved : {"", "HEAD", "refs/heads/main", "main", "v1.2.*"}) {
    operation["syncResult"]["revision"] = unresolved;
    operation["syncResult"]["source"] = {{"repoURL", "https://git"}, {"targetRevision", "main"}};
    EXPECT_EQ(first(), "compared") << unresolved;
  }
  app["status"].erase("operationState");
  EXPECT_EQ(first(), "compared");
  app["status"].erase("sync");
  EXPECT_EQ(first(), "");
}

TEST(ReadPlan, ChartsAndOciArtifactsAreNotAskedFor) {
  auto app = application();
  app["spec"].erase("source");
  app["spec"]["sources"] = {{{"repoURL", "https://charts"}, {"chart", "nginx"}},
                            {{"repoURL", "https://git"}, {"path", "."}},
                            {{"repoURL", "oci://registry/app"}, {"path", "."}}};
  const auto digest = "sha256:" + std::string(64, 'a');
  app["status"]["operationState"]["syncResult"]["revisions"] = {"1.2.3", "abc", digest};
  const auto plan = plan_reads(AppView::parse(app.dump()).value(), {});
  ASSERT_EQ(plan.sync_revisions.size(), 3U);
  EXPECT_FALSE(plan.sync_revisions[0].has_metadata);
  EXPECT_EQ(plan.sync_revisions[0].revision, "1.2.3");
  EXPECT_TRUE(plan.sync_revisions[1].has_metadata);
  EXPECT_EQ(plan.sync_revisions[1].source_index, 1);
  EXPECT_EQ(plan.sync_revisions[1].repo_url, "https://git");
  EXPECT_FALSE(plan.sync_revisions[2].has_metadata);
  EXPECT_EQ(plan.sync_revisions[2].revision, digest);
}

// Argo CD looks a revision up in the present source, unless it is asked about an entry of the
// history.
TEST(ReadPlan, ARevisionOfAFormerSourceIsAskedForByTheHistory) {
  auto app = application();
  const std::string commit(40, 'c');
  const json former = {{"repoURL", "https://git.example.com/former.git"}};
  app["status"]["sync"] = {{"revision", commit}, {"comparedTo", {{"source", former}}}};
  app["status"].erase("operationState");
  app["status"]["history"] = {{{"id", 0}, {"revision", commit}, {"source", former}},
                              {{"id", 1}, {"revision", "other"}, {"source", former}}};
  const auto first = [&app] {
    return plan_reads(AppView::parse(app.dump()).value(), {}).sync_revisions.at(0);
  };
  EXPECT_TRUE(first().has_metadata);
  EXPECT_EQ(first().history_id, 0);
  EXPECT_EQ(first().repo_url, "https://git.example.com/former.git");
  // Argo CD has no way to tell it.
  app["status"]["history"][0]["revision"] = "other";
  EXPECT_FALSE(first().has_metadata);
  EXPECT_EQ(first().revision, commit);
  // The source is the present one.
  app["spec"]["source"] = former;
  EXPECT_TRUE(first().has_metadata);
  EXPECT_EQ(first().history_id, std::nullopt);
  // It was a chart, and is in Git now.
  app["status"]["sync"]["comparedTo"]["source"]["chart"] = "nginx";
  app["status"]["sync"]["revision"] = "1.2.3";
  EXPECT_FALSE(first().has_metadata);
}

TEST(ReadPlan, ARevisionOfAHydratedApplicationIsInItsSyncSource) {
  auto app = application();
  app["spec"].erase("source");
  app["spec"]["sourceHydrator"] = {{"drySource", {{"repoURL", "https://git"}}},
                                   {"syncSource", {{"targetBranch", "env"}, {"path", "a"}}}};
  app["status"]["sync"]["comparedTo"]["source"] = {
      {"repoURL", "https://git"}, {"path", "a"}, {"targetRevision", "env"}};
  const auto plan = plan_reads(AppView::parse(app.dump()).value(), {});
  ASSERT_EQ(plan.sync_revisions.size(), 1U);
  EXPECT_TRUE(plan.sync_revisions[0].has_metadata);
  EXPECT_EQ(plan.sync_revisions[0].history_id, std::nullopt);
}

}  // namespace
}  // namespace gitops::reporter
