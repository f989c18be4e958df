#pragma once

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `cluster add`: makes the account of Argo CD in a cluster, and adds the cluster to a runtime.
cli::Command cluster_add_command();

}  // namespace gitops::ctl
