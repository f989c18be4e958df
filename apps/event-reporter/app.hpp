#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::reporter {

// The event-reporter as the daemon frame runs it: name, settings, parts.
DaemonSpec event_reporter();

}  // namespace gitops::reporter
