#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/actions/answers.hpp"
#include "common/core/time.hpp"
#include "k8s-client/resource.hpp"

// Changes of a Rollout as the command line tool of Argo Rollouts makes them, in the form of patches
// for the Kubernetes API (pkg/kubectl-argo-rollouts/cmd of argoproj/argo-rollouts: pause, promote,
// abort, retry, restart, undo, set). Pure. Objects are given as their JSON.
namespace gitops::app_proxy {

enum class RolloutAction {
  pause,
  resume,             // ends the present pauses
  promote,            // resumes, or skips a step that is not a pause
  promote_full,       // skips all steps, pauses and analyses
  skip_current_step,  // canary only
  skip_all_steps,
  abort,
  retry,  // after an abort
  restart,
};
// Name of the action as Argo CD spells it: "promote-full".
std::string_view to_string(RolloutAction action);

struct RolloutPatch {
  bool of_status = false;  // patches the subresource "status"
  std::string body;        // a merge patch
  bool operator==(const RolloutPatch&) const = default;
};
// Patches in the order in which they are sent. Empty when the Rollout already is as wanted; then
// `note` says so.
struct RolloutPlan {
  std::vector<RolloutPatch> patches;
  std::string note;
};
// Plans an action. `conflict` when it does not apply to the Rollout, as skipping steps of one
// without steps.
Result<RolloutPlan> plan_rollout(RolloutAction action, std::string_view rollout, WallTime now);

// Object that holds the pod template of a Rollout: the Rollout itself, or the one in
// spec.workloadRef.
struct TemplateOwner {
  k8s::Resource resource;
  std::string name;
  std::string path;  // JSON pointer to the template
};
// Returns the owner of the pod template. `unsupported` for a workloadRef to a kind that Argo
// Rollouts does not know.
Result<TemplateOwner> template_owner(std::string_view rollout);

// Label selector of the Rollout's pods, to list its ReplicaSets.
std::string pod_selector(std::string_view rollout);

// Plan to return to an earlier revision.
struct UndoPlan {
  bool changes = true;     // false: the Rollout already has this revision
  std::string patch = {};  // a JSON patch for the template's owner
  std::int64_t from_revision = 0;
  std::int64_t new_revision = 0;  // number that the controller will give it
};
// Plans the return to `revision`; 0 is the previous one. `replica_sets` is the JSON
// of a list. `conflict` when there is no such revision.
Result<UndoPlan> plan_undo(std::string_view rollout, std::string_view replica_sets,
                           std::int64_t revision, std::string_view template_path);

// Returns a JSON patch that sets the image of a container, or of all containers for "*". The patch
// fails when the containers have changed since. `owner` is the object that has the template. Empty
// when the image is already set.
Result<std::string> plan_image(std::string_view owner, std::string_view template_path,
                               std::string_view container, std::string_view image);

}  // namespace gitops::app_proxy
