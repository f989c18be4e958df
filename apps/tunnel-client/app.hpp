#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::tunnel_client {

// The daemon: keeps links to one or several tunnel servers and reconnects lost ones.
DaemonSpec tunnel_client();

}  // namespace gitops::tunnel_client
