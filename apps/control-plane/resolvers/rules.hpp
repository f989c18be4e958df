#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Returns the fields of access rules: abacRules, abacRule, createAbacRule and removeAbacRule. An empty account id is
// the caller's account; the id of another account is an error.
std::vector<FieldRow> rule_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
