#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl rule list|test`: the access rules, and what they allow.
std::vector<cli::Command> rule_commands();

}  // namespace gitops::ctl
