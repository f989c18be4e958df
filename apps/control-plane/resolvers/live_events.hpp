#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Returns the field of Subscription: references to the objects of the account that have changed.
std::vector<FieldRow> live_event_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
