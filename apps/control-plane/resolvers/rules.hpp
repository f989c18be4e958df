#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "control-plane/accounts/identity.hpp"
#include "control-plane/accounts/rules.hpp"
#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// Returns the fields of access rules: abacRules, abacRule, createAbacRule and removeAbacRule. An empty account id is
// the caller's account; the id of another account is an error.
std::vector<FieldRow> rule_rows(Dependencies& dependencies);

// Returns a rule of this account as the type EntityAbacRules.
nlohmann::json rule_json(const AbacRule& rule, const Account& account);

}  // namespace gitops::control_plane_server
