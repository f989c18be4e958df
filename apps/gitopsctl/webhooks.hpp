#pragma once

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl webhooks`: shows the webhooks that a request-router keeps because their event source
// does not accept them, and those that it lost.
cli::Command webhooks_command();

}  // namespace gitops::ctl
