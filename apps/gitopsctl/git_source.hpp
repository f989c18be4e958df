#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl git-source list|create|delete`.
std::vector<cli::Command> git_source_commands();

}  // namespace gitops::ctl
