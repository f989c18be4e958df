#include "control-plane/views/pipeline_view.hpp"

#include <algorithm>

namespace gitops::control_plane_server {
namespace {

std::string_view first_trigger(JsonView sensor) {
  for (const auto trigger : sensor["spec"]["triggers"].items()) {
    return trigger["template"]["name"].text();
  }
  return {};
}

}  // namespace

void append_pipeline(std::string& out, const ObjectState& state, const ParsedBody& body,
                     const ViewContext& context) {
  const auto metadata = body.live()["metadata"];
  ObjectState pipeline = state;
  pipeline.key.kind = "Pipeline";
  ObjectJson at(out);
  at.raw("metadata", metadata_json(pipeline, metadata, context));
  write_projects(at, metadata);
  at.object("self", [&](ObjectJson& self) {
    self.raw("metadata", metadata_json(state, metadata, context));
    self.flag("latest", true);
    write_states(self, state);
  });
  write_states(at, state);
  at.object("spec", [&](ObjectJson& spec) { spec.text("trigger", first_trigger(body.live())); });
  at.end();
}

bool uses_template(JsonView sensor, std::string_view workflow_template) {
  return std::ranges::any_of(sensor["spec"]["triggers"].items(), [&](JsonView trigger) {
    const auto action = trigger["template"];
    return std::ranges::any_of(
        std::initializer_list<std::string_view>{"argoWorkflow", "k8s"}, [&](std::string_view kind) {
          const auto spec = action[kind]["source"]["resource"]["spec"];
          return spec["workflowTemplateRef"]["name"].text() == workflow_template;
        });
  });
}

}  // namespace gitops::control_plane_server
