#pragma once

namespace gitops::control_plane_server {

// Runs the program: one of its commands (`control-plane user …`, `key`, `account`, `copy`), or else the daemon. Returns the
// exit code.
int run_program(int argc, char** argv);

}  // namespace gitops::control_plane_server
