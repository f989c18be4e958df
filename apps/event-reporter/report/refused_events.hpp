#pragma once

#include <string>
#include <string_view>

#include "common/core/status_report.hpp"
#include "event-reporter/ledger/ledger.hpp"

namespace gitops::reporter {

// The events that the control plane refused for good, from their marks in the ledger.

// Returns the entries of /statusz; empty when there are none.
[[nodiscard]] StatusReport refused_status(const Ledger& ledger);
// Returns the JSON for /journal:
// [{"subject":…,"uid":…,"sequence":…,"deletion":…,"since":…,"http_status":…,"reason":…}] of one object
// and its resources, or of all objects when `object` is empty.
[[nodiscard]] std::string refused_json(const Ledger& ledger, std::string_view object);

}  // namespace gitops::reporter
