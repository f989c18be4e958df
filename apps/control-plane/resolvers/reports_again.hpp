#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// The field reportApplicationAgain: has the reporters of a runtime report an Application again. It needs the permission
// of a refresh, which has Argo CD look again. A hidden Application is not found.
std::vector<FieldRow> reports_again_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
