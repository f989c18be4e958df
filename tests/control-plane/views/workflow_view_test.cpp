#include "control-plane/views/workflow_view.hpp"

#include <gtest/gtest.h>

#include "control-plane/views/pipeline_view.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

ViewContext context() {
  return {.account = "acme-id", .now = kSeedTime};
}

// As the controller of Argo Workflows keeps it: nodes by id, templates in the spec.
Json workflow() {
  auto object = object_of("argoproj.io/v1alpha1", "Workflow", "ci", "build-x7k2p");
  object["metadata"]["labels"] = {
      {"workflows.argoproj.io/phase", "Running"}, {"workflows.argoproj.io/creator", "dana"},
      {"events.argoproj.io/sensor", "push"},      {"events.argoproj.io/trigger", "build"},
      {"codefresh.io/product", "store"},          {"codefresh.io/project", "one"}};
  object["spec"] = {{"entrypoint", "main"},
                    {"templates", {{{"name", "main"}, {"container", {{"image", "busybox"}}}}}},
                    {"workflowTemplateRef", {{"name", "ci-template"}}}};
  object["status"] = {{"phase", "Running"},
                      {"progress", "1/2"},
                      {"startedAt", "2026-03-04T09:11:00Z"},
                      {"nodes",
                       {{"build-x7k2p",
                         {{"id", "build-x7k2p"},
                          {"name", "build-x7k2p"},
                          {"displayName", "build-x7k2p"},
                          {"type", "Steps"},
                          {"phase", "Running"},
                          {"children", {"build-x7k2p-1"}}}},
                        {"build-x7k2p-1",
                         {{"id", "build-x7k2p-1"},
                          {"name", "build-x7k2p[0].compile"},
                          {"displayName", "compile"},
                          {"type", "Pod"},
                          {"templateName", "main"},
                          {"phase", "Running"}}},
                        {"odd", {{"type", "Pod"}, {"phase", "NoSuchPhase"}}}}}};
  return object;
}

Json shown(const Json& object) {
  const SeenObject seen(resource_event(object));
  return appended(
      [&](std::string& out) { append_workflow(out, seen.event.state, seen.parsed, context()); });
}

TEST(WorkflowView, AWorkflowIsShownWithItsNodes) {
  const auto json = shown(workflow());
  EXPECT_TRUE(json["spec"]["templates"].is_null()) << "the public SDK cannot decode any";
  EXPECT_EQ(json["spec"]["entrypoint"], "main");
  EXPECT_EQ(json["spec"]["workflowTemplateRef"]["name"], "ci-template");
  EXPECT_EQ(json["spec"]["workflowTemplateRef"]["namespace"], "ci");
  EXPECT_EQ(json["status"]["phase"], "Running");
  EXPECT_EQ(json["status"]["progress"], "1/2");
  EXPECT_EQ(json["status"]["runningPodsCount"], 1);
  ASSERT_EQ(json["status"]["nodes"].size(), 3U);
  for (const auto& node : json["status"]["nodes"]) {
    EXPECT_TRUE(node["type"].is_string());
    EXPECT_TRUE(node["name"].is_string());
    if (node["displayName"] == "") EXPECT_TRUE(node["phase"].is_null()) << "no word of the schema";
  }
  EXPECT_EQ(json["initiator"]["name"], "dana");
  EXPECT_EQ(json["projects"], Json({"one"}));
  EXPECT_EQ(json["pipeline"]["metadata"]["name"], "push");
  EXPECT_EQ(json["pipeline"]["metadata"]["namespace"], "ci");
  EXPECT_EQ(json["pipeline"]["spec"]["trigger"], "build");
  EXPECT_EQ(json["metadata"]["uid"], "uid-build-x7k2p");
}

TEST(WorkflowView, APhaseIsNeverNull) {
  auto object = workflow();
  object.erase("status");
  EXPECT_EQ(shown(object)["status"]["phase"], "Pending");
  EXPECT_EQ(shown(object)["status"]["nodes"], Json::array());
  object["status"] = {{"phase", "Omitted"}};
  EXPECT_EQ(shown(object)["status"]["phase"], "Unknown");
  for (const auto* phase : {"Pending", "Running", "Succeeded", "Failed", "Error"}) {
    object["status"] = {{"phase", phase}};
    EXPECT_EQ(shown(object)["status"]["phase"], phase);
  }
}

TEST(WorkflowView, ATemplateOfTheClusterHasNoNamespace) {
  auto object = workflow();
  object["spec"]["workflowTemplateRef"]["clusterScope"] = true;
  const auto ref = shown(object)["spec"]["workflowTemplateRef"];
  EXPECT_EQ(ref["kind"], "ClusterWorkflowTemplate");
  EXPECT_TRUE(ref["namespace"].is_null());
}

TEST(WorkflowView, ConditionsNarrow) {
  const SeenObject seen(resource_event(workflow()));
  const auto fits = [&](const WorkflowConditions& conditions) {
    return matches(conditions, seen.event.state, seen.parsed.live());
  };
  EXPECT_TRUE(WorkflowConditions().is_empty());
  EXPECT_TRUE(fits({}));
  EXPECT_TRUE(fits({.pipelines = {"other", "push"}}));
  EXPECT_FALSE(fits({.pipelines = {"other"}}));
  EXPECT_FALSE(fits({.pipelines = {"push"}, .pipeline_namespaces = {"cd"}}));
  EXPECT_TRUE(fits({.products = {"store"}}));
  EXPECT_FALSE(fits({.environments = {"prod"}}));
  EXPECT_TRUE(fits({.workflow_template = "ci-template"}));
  EXPECT_FALSE(fits({.workflow_template = "ci-template", .is_cluster_template = true}));
  EXPECT_FALSE(fits({.has_event_conditions = true})) << "nothing is known of Git events";
  const auto started = time_of("2026-03-04T09:11:00Z");
  EXPECT_TRUE(fits({.started_from = started, .started_to = started}));
  EXPECT_FALSE(fits({.started_from = started + 1}));
  EXPECT_FALSE(fits({.started_to = started - 1}));
}

TEST(PipelineView, APipelineIsASensor) {
  auto sensor = object_of("argoproj.io/v1alpha1", "Sensor", "ci", "push");
  sensor["spec"]["triggers"] = {
      {{"template",
        {{"name", "build"},
         {"argoWorkflow",
          {{"operation", "submit"},
           {"source",
            {{"resource",
              {{"kind", "Workflow"},
               {"spec", {{"workflowTemplateRef", {{"name", "ci-template"}}}}}}}}}}}}}}};
  const SeenObject seen(app_event(sensor, managed_by("team-a")));
  const auto json = appended(
      [&](std::string& out) { append_pipeline(out, seen.event.state, seen.parsed, context()); });
  EXPECT_EQ(json["metadata"]["name"], "push");
  EXPECT_EQ(json["metadata"]["kind"], "Pipeline");
  EXPECT_EQ(json["self"]["metadata"]["kind"], "Sensor");
  EXPECT_EQ(json["self"]["syncStatus"], "SYNCED");
  EXPECT_EQ(json["spec"]["trigger"], "build");
  EXPECT_TRUE(uses_template(seen.parsed.live(), "ci-template"));
  EXPECT_FALSE(uses_template(seen.parsed.live(), "other"));
}

}  // namespace
}  // namespace gitops::control_plane_server
