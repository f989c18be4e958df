#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/control_plane/access_rules.hpp"
#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"

// Access rules of an account in the database. common/control_plane/access_rules evaluates them, here and in app-proxies.
// Errors and threads as in account_store.hpp.
namespace gitops::control_plane_server {

using control_plane::AbacRule;

// Stores a rule under a new id and returns the rule with its id. invalid_argument: no team, no action, an attribute
// without a name, or more than 1,000 of any of them.
Result<AbacRule> create_rule(store::Connection& connection, std::int64_t account, AbacRule rule,
                             Micros now);
// Checks what a new rule names. invalid_argument, with the names that there are: an action that there is not, or a team
// that the account does not have.
Result<void> check_rule(store::Connection& connection, std::int64_t account, const AbacRule& rule);
// Removes a rule and returns it.
Result<AbacRule> remove_rule(store::Connection& connection, std::int64_t account,
                             std::string_view id);
Result<AbacRule> find_rule(store::Connection& connection, std::int64_t account,
                           std::string_view id);
// Returns the rules of one entity type in the order of their creation; an empty type selects all.
Result<std::vector<AbacRule>> list_rules(store::Connection& connection, std::int64_t account,
                                         std::string_view entity_type);

std::span<const store::Statement> rule_statements();

}  // namespace gitops::control_plane_server
