#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Runtimes and clusters: how they are registered, what they report of themselves, and how they are shown.
std::vector<FieldRow> runtime_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
