#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// The timeline of Applications, and the steps of their Rollouts.
std::vector<FieldRow> release_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
