#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl status`: the runtimes of the account and their Applications on one screen.
std::vector<cli::Command> status_commands();

}  // namespace gitops::ctl
