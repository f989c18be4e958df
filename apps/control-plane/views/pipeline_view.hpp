#pragma once

#include <string>
#include <string_view>

#include "control-plane/views/entity_view.hpp"

// GraphQL views of pipelines: one for each Sensor that a Git source deploys. Pure.
namespace gitops::control_plane_server {

// Appends the JSON of type Pipeline.
void append_pipeline(std::string& out, const ObjectState& state, const ParsedBody& body,
                     const ViewContext& context);
// Returns whether a trigger of the Sensor starts Workflows from this WorkflowTemplate.
bool uses_template(JsonView sensor, std::string_view workflow_template);

}  // namespace gitops::control_plane_server
