#pragma once

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl diag`: writes a bundle that shows the state of a runtime, without secrets.
cli::Command diag_command();

}  // namespace gitops::ctl
