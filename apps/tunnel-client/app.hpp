#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::tunnel {

// The daemon: one session with the tunnel's server at a time, renewed for ever.
DaemonSpec tunnel_client();

}  // namespace gitops::tunnel
