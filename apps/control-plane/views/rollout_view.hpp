#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/store/connection.hpp"
#include "control-plane/views/entity_view.hpp"

// GraphQL views of Rollouts, from the state that the controller of Argo Rollouts writes.
namespace gitops::control_plane_server {

// The values of RolloutStepStatus in the schema.
enum class StepStatus : std::uint8_t {
  active,
  failed,
  passed,
  paused_inconclusive,
  paused_indefinite,
  pending,
  terminated
};
std::string_view to_string(StepStatus status);

// An AnalysisRun of a Rollout.
struct AnalysisRun {
  std::string name = {};
  std::string type = {};      // "Step", "Background", "PrePromotion", "PostPromotion"
  std::int64_t step = -1;     // of a canary; -1: of none
  std::string pod_hash = {};  // of the revision that it judges
  std::string phase = {};     // "Running", "Successful", …
  std::string message = {};
};
AnalysisRun analysis_run(JsonView object);

// Returns the status of a step of a canary, or of the whole change when the Rollout has no steps. Nothing when the
// controller has not observed the present spec of the Rollout yet, or when the step does not exist.
std::optional<StepStatus> step_status(JsonView rollout, std::int64_t step,
                                      std::span<const AnalysisRun> runs);

// Appends the JSON of type ReleaseRolloutState.
void append_rollout_state(std::string& out, const ObjectState& state, JsonView rollout,
                          std::span<const AnalysisRun> runs);

// A Rollout with its AnalysisRuns. The row of the resource reporter is preferred, since it has the whole state.
struct RolloutRow {
  ObjectRow row;
  std::vector<AnalysisRun> runs;
};
Result<std::optional<RolloutRow>> find_rollout(store::Connection& connection, std::int64_t account,
                                               const ObjectRow& resource);

// The query of a pipeline that waits for a step of a deployment.
struct StepQuestion {
  std::string runtime;
  std::string application_namespace;
  std::string application;
  std::string commit;  // the commit or its beginning, seven digits or more
  std::string rollout;
  std::int64_t step = 0;
};
// Returns the status of a step; nothing until the Application has been deployed to that commit. A replaced commit is
// terminated.
Result<std::optional<StepStatus>> find_step_status(store::Connection& connection,
                                                   std::int64_t account,
                                                   const StepQuestion& question);

}  // namespace gitops::control_plane_server
