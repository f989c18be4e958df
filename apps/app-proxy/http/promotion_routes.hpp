#pragma once

#include "app-proxy/http/request_gate.hpp"
#include "app-proxy/promotions/promotions.hpp"
#include "app-proxy/users/audit.hpp"
#include "common/http/server.hpp"

namespace gitops::app_proxy {

// Serves POST /api/promotions/commit and /api/promotions/pullRequest: authenticates, promotes,
// writes the line of the audit stream and responds. `promotions` is null while the runtime has no
// folder for clones. Loop thread only; the arguments outlive it.
Task<> serve_promotion(http::Exchange& exchange, PromotionKind kind, RequestGate& gate,
                       Audit& audit, Promotions* promotions);

}  // namespace gitops::app_proxy
