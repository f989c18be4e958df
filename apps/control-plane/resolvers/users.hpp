#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Returns the fields of the caller and the settings of its account: me, plan, limitsStatus, latestCliRelease,
// updateCsdpSettings and suggestIscRepo.
std::vector<FieldRow> user_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
