#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"

// Access rules of an account in the database. They are stored and listed here; app-proxies evaluate them. Errors and
// threads as in account_store.hpp.
namespace gitops::control_plane_server {

// An attribute-based access rule: members of these teams may perform these actions on entities of this type with
// matching attributes.
struct AbacRule {
  struct Attribute {
    std::string name;  // "LABEL"
    std::optional<std::string> key;
    std::string value;
  };
  std::string id;
  std::string entity_type;  // "gitopsApplications"
  std::vector<std::string> teams;
  std::vector<std::string> tags;
  std::vector<std::string> actions;
  std::vector<Attribute> attributes;
};

// Stores a rule under a new id and returns the rule with its id. invalid_argument: no team, no action, an attribute
// without a name, or more than 1,000 of any of them.
Result<AbacRule> create_rule(store::Connection& connection, std::int64_t account, AbacRule rule,
                             Micros now);
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
