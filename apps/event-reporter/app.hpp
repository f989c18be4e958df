#pragma once

#include "common/daemon/daemon.hpp"

namespace gitops::reporter {

// Returns the event-reporter as the daemon frame runs it: name, settings, parts.
DaemonSpec event_reporter();

}  // namespace gitops::reporter
