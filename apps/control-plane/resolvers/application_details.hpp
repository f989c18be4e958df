#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// The fields about one Application that pages ask for one by one: applicationJournal, applicationResource.
std::vector<FieldRow> application_detail_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
