#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Returns the fields of images and annotations, which builds report.
std::vector<FieldRow> image_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
