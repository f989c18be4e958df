#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl app sync|refresh|rollback|terminate|logs|diff`: through the app-proxy of the Application's runtime.
std::vector<cli::Command> app_action_commands();

}  // namespace gitops::ctl
