#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Returns the fields of the timeline of Applications and of the steps of their Rollouts.
std::vector<FieldRow> release_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
