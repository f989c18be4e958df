#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Private keys that the runtimes of an account share: saveSealingKey and getSealingKey.
std::vector<FieldRow> sealing_key_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
