#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::app_proxy {

// The daemon: GraphQL and REST for the user interface, the command line and the programs of the
// runtime. It serves as soon as it has started, whether or not its peers can be reached.
DaemonSpec app_proxy();

}  // namespace gitops::app_proxy
