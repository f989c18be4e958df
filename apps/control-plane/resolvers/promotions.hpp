#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Products and promotions: their templates; of all else there is nothing yet, which clients take as empty lists.
std::vector<FieldRow> promotion_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
