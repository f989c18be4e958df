#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Returns the fields of products and promotions. Only promotion templates have data; the other lists are empty.
std::vector<FieldRow> promotion_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
