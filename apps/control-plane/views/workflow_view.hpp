#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control-plane/views/entity_view.hpp"

// GraphQL views of Workflows. Pure.
namespace gitops::control_plane_server {

// Appends the JSON of type Workflow. Its spec.templates is always null, because the public SDK cannot decode any value.
void append_workflow(std::string& out, const ObjectState& state, const ParsedBody& body,
                     const ViewContext& context);

// The conditions of WorkflowsFilterArgs that need the body. Values of one condition are alternatives.
struct WorkflowConditions {
  Micros started_from = 0;
  Micros started_to = 0;
  std::vector<std::string> pipelines = {};  // names of Sensors
  std::vector<std::string> pipeline_namespaces = {};
  std::vector<std::string> initiators = {};
  std::vector<std::string> origins = {};  // words of WorkflowOrigins
  std::vector<std::string> applications = {};
  std::vector<std::string> products = {};
  std::vector<std::string> environments = {};
  std::string workflow_template = {};
  bool is_cluster_template = false;   // the template is one of the cluster
  bool has_event_conditions = false;  // about Git events, which the control plane does not have

  [[nodiscard]] bool is_empty() const;
};
bool matches(const WorkflowConditions& conditions, const ObjectState& state, JsonView workflow);

}  // namespace gitops::control_plane_server
