#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl events`: the deployments of the account, and what changes now.
std::vector<cli::Command> event_commands();

}  // namespace gitops::ctl
