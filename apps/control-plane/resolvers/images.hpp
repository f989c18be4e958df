#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Images and annotations, as builds report them.
std::vector<FieldRow> image_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
