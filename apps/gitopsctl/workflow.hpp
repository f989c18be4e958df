#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl workflow …`: Workflows as the control plane has them; changes through the app-proxy of their runtime.
std::vector<cli::Command> workflow_commands();

}  // namespace gitops::ctl
