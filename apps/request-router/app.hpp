#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::router {

// The request-router for run_daemon().
DaemonSpec request_router();

}  // namespace gitops::router
