#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::tunnel_server {

// The daemon: accepts clients of the tunnel on one port, and users, whom it sends to them, on
// another.
DaemonSpec tunnel_server();

}  // namespace gitops::tunnel_server
