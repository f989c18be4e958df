// Objects of Argo as app-proxy reads them: a line for an Application, Workflow or Rollout, the rest is a list of
// ReplicaSets or the object that has the pod template. Patches that are made of them are JSON.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "app-proxy/actions/applications.hpp"
#include "app-proxy/actions/entities.hpp"
#include "app-proxy/actions/rollout_patches.hpp"
#include "app-proxy/actions/workflows.hpp"

namespace {

using namespace gitops;
using namespace gitops::app_proxy;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_json(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  require(parser.parse(simdjson::padded_string(text)).get(root) == simdjson::SUCCESS);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto split = std::min(input.find('\n'), input.size());
  const auto object = input.substr(0, split);
  const auto other = input.substr(std::min(split + 1, input.size()));

  (void)application_entity(object, "runtime");
  (void)workflow_entity(object, "runtime");
  (void)application_state(object);
  argo::ResourceRef which{.kind = "Rollout", .name = "ui"};
  if (complete(which, object)) require(which.name == "ui");
  for (int i = 0; i <= static_cast<int>(WorkflowAction::remove); ++i) {
    const auto outcome = workflow_outcome(static_cast<WorkflowAction>(i), object);
    if (outcome) require(outcome->changed == outcome->note.empty());
  }

  for (int i = 0; i <= static_cast<int>(RolloutAction::restart); ++i) {
    const auto plan = plan_rollout(static_cast<RolloutAction>(i), object, wall_now());
    if (!plan) continue;
    require(plan->patches.empty() != plan->note.empty());
    for (const auto& patch : plan->patches) require_json(patch.body);
  }
  (void)template_owner(object);
  (void)pod_selector(object);
  for (const std::int64_t revision : {0, 1, 2}) {
    const auto plan = plan_undo(object, other, revision, "/spec/template");
    if (plan && plan->changes && plan->new_revision < plan->from_revision) std::abort();
  }
  for (const char* container : {"*", "main"}) {
    const auto patch = plan_image(other, "/spec/template", container, "image:1");
    if (patch && !patch->empty()) require_json(*patch);
  }
  return 0;
}
