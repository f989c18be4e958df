#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::tunnel {

// The daemon: links to one or several servers of the tunnel, renewed for ever.
DaemonSpec tunnel_client();

}  // namespace gitops::tunnel
