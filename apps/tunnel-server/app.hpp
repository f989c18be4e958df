#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::tunnel_server {

// The daemon: accepts tunnel clients on one port and users on another, and forwards users to
// clients.
DaemonSpec tunnel_server();

}  // namespace gitops::tunnel_server
