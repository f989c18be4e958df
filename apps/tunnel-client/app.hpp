#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::tunnel_client {

// The daemon: links to one or several servers of the tunnel, renewed for ever.
DaemonSpec tunnel_client();

}  // namespace gitops::tunnel_client
