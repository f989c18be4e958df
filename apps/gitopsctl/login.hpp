#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl login`, `whoami` and `context list|use|delete`: which control plane, and as whom.
std::vector<cli::Command> login_commands();
std::vector<cli::Command> context_commands();

}  // namespace gitops::ctl
