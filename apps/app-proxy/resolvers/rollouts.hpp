#pragma once

#include "app-proxy/actions/rollouts.hpp"
#include "common/graphql/resolvers.hpp"

// The fields of the schema about Rollouts.
namespace gitops::app_proxy {

Task<Result<Outcome>> rollout_action(RolloutActions& rollouts, graphql::Call& call);
// An undone Rollout, as rolloutRollback shows it.
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
