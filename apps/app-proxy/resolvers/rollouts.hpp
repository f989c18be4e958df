#pragma once

#include "app-proxy/actions/rollouts.hpp"
#include "common/graphql/resolvers.hpp"

// Fields of the schema for Rollouts.
namespace gitops::app_proxy {

Task<Result<Outcome>> rollout_action(RolloutActions& rollouts, graphql::Call& call);
// A Rollout after an undo, in the form of rolloutRollback.
struct RollbackView {
  std::string rollout;
  std::int64_t new_revision = 0;
};
Task<Result<RollbackView>> rollout_rollback(RolloutActions& rollouts, graphql::Call& call);
Task<Result<Outcome>> set_rollout_image(RolloutActions& rollouts, graphql::Call& call);
Task<Result<Outcome>> terminate_run(RolloutActions& rollouts, RolloutActions::Run run,
                                    graphql::Call& call);

void add_rollout_types(graphql::Resolvers& to);

}  // namespace gitops::app_proxy
