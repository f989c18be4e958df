#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::app_proxy {

// The daemon app-proxy: GraphQL and REST for the user interface, the command line and the programs
// of the runtime. It serves as soon as it has started, even when its peers cannot be reached.
DaemonSpec app_proxy();

}  // namespace gitops::app_proxy
