#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl audit`: who has changed what. For administrators.
std::vector<cli::Command> audit_commands();

}  // namespace gitops::ctl
