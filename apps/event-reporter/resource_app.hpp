#pragma once

#include "common/daemon/daemon.hpp"
#include "event-reporter/foundation.hpp"

namespace gitops::reporter {

// The App of mode `resource`.
DaemonApp make_resource_app(const DaemonContext& context, Environment environment);

}  // namespace gitops::reporter
