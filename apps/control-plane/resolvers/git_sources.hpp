#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Returns the fields of Git sources. updateGitSourcePermissions, which reports their permissions, is a field of
// runtimes.
std::vector<FieldRow> git_source_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
