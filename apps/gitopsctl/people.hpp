#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl user|team|token|service-account list`: who may log in.
std::vector<cli::Command> people_commands();

}  // namespace gitops::ctl
