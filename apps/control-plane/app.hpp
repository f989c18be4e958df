#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::control_plane_server {

// Returns the daemon: runtimes report to it, and the public command line, the SDK and users query it. It serves once
// its database is open and migrated.
DaemonSpec control_plane();

}  // namespace gitops::control_plane_server
