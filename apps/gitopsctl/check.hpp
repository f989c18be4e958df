#pragma once

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl check`: checks that Kubernetes, Argo CD and the control plane are reachable and accept
// the user's credentials, and that the user has the permissions that the daemons of a runtime need.
cli::Command check_command();

}  // namespace gitops::ctl
