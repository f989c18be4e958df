#pragma once

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl version`: the version of the program and, when it is reachable, of the cluster.
cli::Command version_command();

}  // namespace gitops::ctl
