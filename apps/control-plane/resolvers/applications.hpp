#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Returns the fields of Applications and of the components of runtimes.
std::vector<FieldRow> application_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
