#pragma once

#include "common/cli/command.hpp"

namespace gitops::ctl {

// All commands of gitopsctl.
cli::Program gitopsctl();

}  // namespace gitops::ctl
