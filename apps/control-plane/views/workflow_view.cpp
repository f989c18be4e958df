#include "control-plane/views/workflow_view.hpp"

#include <algorithm>

#include "control-plane/projection/event.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::string_view kSensor = "events.argoproj.io/sensor";
constexpr std::string_view kTrigger = "events.argoproj.io/trigger";
constexpr std::string_view kCreator = "workflows.argoproj.io/creator";
constexpr std::string_view kOrigin = "codefresh.io/workflow-origin";

constexpr std::initializer_list<std::string_view> kNodePhases{
    "Error", "Failed", "Omitted", "Pending", "Running", "Skipped", "Succeeded"};
constexpr std::initializer_list<std::string_view> kOrigins{
    "CI_ENRICHMENT",    "CI_ENRICHMENT_CODEFRESH_CLASSIC",
    "CI_ENRICHMENT_GA", "CI_ENRICHMENT_JENKINS",
    "COMMON",           "PLAYGROUND"};

// Returns a word of WorkflowPhases, which is never null. A Workflow has no phase until its controller has seen it.
std::string_view workflow_phase(Phase phase) {
  switch (phase) {
    case Phase::none:
    case Phase::pending:
      return "Pending";
    case Phase::running:
      return "Running";
    case Phase::succeeded:
      return "Succeeded";
    case Phase::failed:
      return "Failed";
    case Phase::error:
      return "Error";
    case Phase::terminating:
    case Phase::healthy:
    case Phase::progressing:
    case Phase::paused:
    case Phase::degraded:
    case Phase::inconclusive:
    case Phase::unknown:
      return "Unknown";
  }
  return "Unknown";
}

void write_node(ArrayJson& out, JsonView node) {
  out.object([&](ObjectJson& at) {
    at.text("type", node["type"].text());
    at.text("name", node["name"].text());
    at.text("displayName", node["displayName"].text());
    at.text_or_null("templateName", node["templateName"].text());
    at.array("children", [&](ArrayJson& children) {
      for (const auto child : node["children"].items()) children.text(child.text());
    });
    write_enum(at, "phase", node["phase"].text(), kNodePhases);
    at.text_or_null("progress", node["progress"].text());
    at.text_or_null("message", node["message"].text());
    at.text_or_null("startedAt", node["startedAt"].text());
    at.text_or_null("finishedAt", node["finishedAt"].text());
    at.text_or_null("id", node["id"].text());
    at.text_or_null("hostNodeName", node["hostNodeName"].text());
    at.text_or_null("templateScope", node["templateScope"].text());
  });
}

void write_workflow_status(ObjectJson& out, const ObjectState& state, JsonView workflow) {
  const auto status = workflow["status"];
  out.object("status", [&](ObjectJson& at) {
    at.text_or_null("startedAt", status["startedAt"].text());
    at.text_or_null("finishedAt", status["finishedAt"].text());
    at.text("phase", workflow_phase(state.phase));
    at.text_or_null("progress", status["progress"].text());
    at.text_or_null("message", status["message"].text());
    std::int64_t running = 0;
    at.array("nodes", [&](ArrayJson& nodes) {
      for (const auto& [id, node] : status["nodes"].members()) {
        write_node(nodes, node);
        const bool is_running = node["type"].text() == "Pod" && node["phase"].text() == "Running";
        running += is_running ? 1 : 0;
      }
    });
    at.number("runningPodsCount", running);
  });
}

void write_spec(ObjectJson& out, const ObjectState& state, JsonView workflow) {
  const auto spec = workflow["spec"];
  out.object("spec", [&](ObjectJson& at) {
    at.text_or_null("entrypoint", spec["entrypoint"].text());
    at.null("templates");
    const auto reference = spec["workflowTemplateRef"];
    if (!reference.is_object()) {
      at.null("workflowTemplateRef");
      return;
    }
    at.object("workflowTemplateRef", [&](ObjectJson& ref) {
      const bool is_of_cluster = reference["clusterScope"].is_true();
      ref.text_or_null("name", reference["name"].text());
      ref.text("group", kArgoGroup);
      ref.text("version", "v1alpha1");
      ref.text("kind", is_of_cluster ? "ClusterWorkflowTemplate" : "WorkflowTemplate");
      ref.text_or_null("namespace",
                       is_of_cluster ? std::string_view() : state.key.object_namespace);
    });
  });
}

// Writes the Pipeline whose Sensor made the Workflow, from the Workflow's labels.
void write_pipeline_of(ObjectJson& out, const ObjectState& state, JsonView workflow,
                       const ViewContext& context) {
  const auto labels = workflow["metadata"]["labels"];
  const auto sensor = labels[kSensor].text();
  if (sensor.empty()) {
    out.null("pipeline");
    return;
  }
  ObjectState pipeline;
  pipeline.key = {.runtime = state.key.runtime,
                  .group = std::string(kArgoGroup),
                  .kind = "Pipeline",
                  .object_namespace = state.key.object_namespace,
                  .name = std::string(sensor)};
  pipeline.version = "v1alpha1";
  out.object("pipeline", [&](ObjectJson& at) {
    at.raw("metadata", metadata_json(pipeline, {}, context));
    write_states(at, pipeline);
    at.object("spec", [&](ObjectJson& spec) { spec.text("trigger", labels[kTrigger].text()); });
  });
}

bool has_one_of(const std::vector<std::string>& wanted, std::string_view value) {
  return wanted.empty() || std::ranges::find(wanted, value) != wanted.end();
}

}  // namespace

void append_workflow(std::string& out, const ObjectState& state, const ParsedBody& body,
                     const ViewContext& context) {
  const auto workflow = body.live();
  const auto metadata = workflow["metadata"];
  ObjectJson at(out);
  at.raw("metadata", metadata_json(state, metadata, context));
  write_projects(at, metadata);
  write_spec(at, state, workflow);
  write_workflow_status(at, state, workflow);
  if (const auto creator = metadata["labels"][kCreator].text(); !creator.empty()) {
    at.object("initiator", [&](ObjectJson& initiator) { initiator.text("name", creator); });
  } else {
    at.null("initiator");
  }
  at.raw("eventsPayload", "[]");
  write_pipeline_of(at, state, workflow, context);
  write_enum(at, "originatedFrom", annotation_or_label(metadata, kOrigin), kOrigins);
  at.end();
}

bool WorkflowConditions::is_empty() const {
  return started_from == 0 && started_to == 0 && pipelines.empty() && pipeline_namespaces.empty() &&
         initiators.empty() && origins.empty() && applications.empty() && products.empty() &&
         environments.empty() && workflow_template.empty() && !has_event_conditions;
}

bool matches(const WorkflowConditions& conditions, const ObjectState& state, JsonView workflow) {
  if (conditions.has_event_conditions) return false;
  const auto metadata = workflow["metadata"];
  const auto labels = metadata["labels"];
  const auto started = time_of(workflow["status"]["startedAt"].text());
  if (conditions.started_from > 0 && started < conditions.started_from) return false;
  if (conditions.started_to > 0 && (started == 0 || started > conditions.started_to)) return false;
  if (!conditions.workflow_template.empty()) {
    const auto reference = workflow["spec"]["workflowTemplateRef"];
    if (reference["name"].text() != conditions.workflow_template) return false;
    if (reference["clusterScope"].is_true() != conditions.is_cluster_template) return false;
  }
  const bool has_pipeline_condition =
      !conditions.pipelines.empty() || !conditions.pipeline_namespaces.empty();
  if (has_pipeline_condition && labels[kSensor].text().empty()) return false;
  return has_one_of(conditions.pipelines, labels[kSensor].text()) &&
         has_one_of(conditions.pipeline_namespaces, state.key.object_namespace) &&
         has_one_of(conditions.initiators, labels[kCreator].text()) &&
         has_one_of(conditions.origins, annotation_or_label(metadata, kOrigin)) &&
         has_one_of(conditions.applications, labels["codefresh.io/app-name"].text()) &&
         has_one_of(conditions.products, labels["codefresh.io/product"].text()) &&
         has_one_of(conditions.environments, labels["codefresh.io/env"].text());
}

}  // namespace gitops::control_plane_server
