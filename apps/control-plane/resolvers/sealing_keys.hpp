#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Returns the fields of private keys that the runtimes of an account share: saveSealingKey and getSealingKey.
std::vector<FieldRow> sealing_key_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
