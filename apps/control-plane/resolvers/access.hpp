#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Resolvers that tell who may do what with an entity, and by which rule: by the evaluation that limits lists here and
// that app-proxies use.
std::vector<FieldRow> access_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
