#pragma once

#include <vector>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `webhook list` and `webhook redeliver`: the webhooks that a request-router keeps because their event source does not
// accept them, and those that it lost. They ask its admin port, not the control plane.
std::vector<cli::Command> webhook_commands();

}  // namespace gitops::ctl
