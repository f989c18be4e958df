#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/actions/answers.hpp"
#include "common/core/time.hpp"
#include "k8s-client/resource.hpp"

// The changes of a Rollout that the command line tool of Argo Rollouts makes, as patches for the Kubernetes
// API (pkg/kubectl-argo-rollouts/cmd of argoproj/argo-rollouts: pause, promote, abort, retry, restart, undo,
// set). Pure. Objects are given as their JSON.
namespace gitops::app_proxy {

enum class RolloutAction {
  pause,
  resume,             // ends the pauses of now
  promote,            // resume, or past a step that is no pause
  promote_full,       // past all steps, pauses and analyses
  skip_current_step,  // of a canary
  skip_all_steps,
  abort,
  retry,  // after an abort
  restart,
};
// "promote-full", as Argo CD calls its actions.
std::string_view to_string(RolloutAction action);

struct RolloutPatch {
  bool of_status = false;  // for the subresource
  std::string body;        // a merge patch
  bool operator==(const RolloutPatch&) const = default;
};
// In the order in which they are sent; none when the Rollout is as wanted, which `note` tells.
struct RolloutPlan {
  std::vector<RolloutPatch> patches;
  std::string note;
};
// `conflict` when the action means nothing for the Rollout: steps of a Rollout without any.
Result<RolloutPlan> plan_rollout(RolloutAction action, std::string_view rollout, WallTime now);

// The object whose pod template a Rollout has: itself, or what spec.workloadRef names.
struct TemplateOwner {
  k8s::Resource resource;
  std::string name;
  std::string path;  // JSON pointer of the template
};
// `unsupported` for a workloadRef to a kind that Argo Rollouts does not know.
Result<TemplateOwner> template_owner(std::string_view rollout);

// The label selector of the Rollout's pods, for a list of its ReplicaSets.
std::string pod_selector(std::string_view rollout);

// The way back to an earlier revision.
struct UndoPlan {
  bool changes = true;     // false: the Rollout has this revision now
  std::string patch = {};  // a JSON patch of the template's owner
  std::int64_t from_revision = 0;
  std::int64_t new_revision = 0;  // that the controller will give it
};
// `replica_sets` is the JSON of a list. Revision 0 is the one before the present one. Errors: conflict when
// there is no such revision.
Result<UndoPlan> plan_undo(std::string_view rollout, std::string_view replica_sets,
                           std::int64_t revision, std::string_view template_path);

// Sets the image of a container, or of all by "*", as a JSON patch that fails when the containers have
// changed since. `owner` is the object that has the template. Empty when the image is set already.
Result<std::string> plan_image(std::string_view owner, std::string_view template_path,
                               std::string_view container, std::string_view image);

}  // namespace gitops::app_proxy
