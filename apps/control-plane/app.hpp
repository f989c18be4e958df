#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::control_plane_server {

// The daemon: runtimes report to it, and the public command line, the SDK and people ask it. It serves once its database
// is open and migrated.
DaemonSpec control_plane();

}  // namespace gitops::control_plane_server
