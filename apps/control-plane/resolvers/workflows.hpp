#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Returns the fields of Workflows and pipelines.
std::vector<FieldRow> workflow_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
