#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl rollout …`: the Rollouts of an Application; changes through the app-proxy of its runtime.
std::vector<cli::Command> rollout_commands();

}  // namespace gitops::ctl
