#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl event list`: the deployments of the account, and what changes now; `event redeliver`: has an Application
// reported again.
std::vector<cli::Command> event_commands();

}  // namespace gitops::ctl
