#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl cluster list|remove`.
std::vector<cli::Command> cluster_commands();

}  // namespace gitops::ctl
