#pragma once

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl version`: its own version, and that of the cluster where one is reachable.
cli::Command version_command();

}  // namespace gitops::ctl
