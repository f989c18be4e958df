#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Returns the fields of runtimes and clusters: registration, status reports and views.
std::vector<FieldRow> runtime_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
