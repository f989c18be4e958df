#pragma once

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl check`: are Kubernetes, Argo CD and the control plane reachable with the credentials
// given, and has their owner the rights that the daemons of a runtime need?
cli::Command check_command();

}  // namespace gitops::ctl
