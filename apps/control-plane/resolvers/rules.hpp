#pragma once

#include <vector>

#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// The access rules of an account: abacRules, abacRule, createAbacRule and removeAbacRule. An empty account id is the
// caller's account; any other one than the caller's is an error.
std::vector<FieldRow> rule_rows(Dependencies& dependencies);

}  // namespace gitops::control_plane_server
