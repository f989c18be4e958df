#include "control-plane/accounts/rules.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/text.hpp"
#include "control-plane/accounts/teams.hpp"
#include "control-plane/accounts/tokens.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Rows;
using store::Statement;
using Json = nlohmann::json;

constexpr std::size_t kMaxItems = 1'000;
// Limits of a message.
constexpr std::size_t kMaxShownName = 64;  // bytes
constexpr std::size_t kMaxShownTeams = 20;

constexpr std::string_view kRuleSelect =
    "SELECT id, entity_type, teams, tags, actions, attributes FROM abac_rule WHERE account = $1";
constexpr std::string_view kById = " AND id = $2";
constexpr std::string_view kByType = " AND entity_type = $2";
constexpr std::string_view kInOrder = " ORDER BY created_at, id";

constexpr Statement kAddRule{
    .name = "accounts.add_rule",
    .sql =
        "INSERT INTO abac_rule (account, id, entity_type, teams, tags, actions, attributes, "
        "created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"};
constexpr Statement kRule{.name = "accounts.rule", .sql = store::joined<kRuleSelect, kById>};
constexpr Statement kRulesOfType{.name = "accounts.rules_of_type",
                                 .sql = store::joined<kRuleSelect, kByType, kInOrder>};
constexpr Statement kAllRules{.name = "accounts.rules",
                              .sql = store::joined<kRuleSelect, kInOrder>};
constexpr Statement kRemoveRule{.name = "accounts.remove_rule",
                                .sql = "DELETE FROM abac_rule WHERE account = $1 AND id = $2"};

constexpr std::array kRuleStatements{kAddRule, kRule, kRulesOfType, kAllRules, kRemoveRule};

std::vector<std::string> texts_of(std::string_view json) {
  std::vector<std::string> texts;
  const auto list = Json::parse(json, nullptr, false);
  if (!list.is_array()) return texts;
  for (const Json& item : list) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

std::string attributes_text(const std::vector<AbacRule::Attribute>& attributes) {
  Json list = Json::array();
  for (const auto& attribute : attributes) {
    Json item{{"name", attribute.name}, {"value", attribute.value}};
    if (attribute.key) item["key"] = *attribute.key;
    list.push_back(std::move(item));
  }
  return to_text(list);
}

std::vector<AbacRule::Attribute> attributes_of(std::string_view json) {
  std::vector<AbacRule::Attribute> attributes;
  const auto list = Json::parse(json, nullptr, false);
  if (!list.is_array()) return attributes;
  for (const Json& item : list) {
    AbacRule::Attribute attribute{
        .name = string_at(item, {"name"}), .key = {}, .value = string_at(item, {"value"})};
    if (item.contains("key")) attribute.key = string_at(item, {"key"});
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

AbacRule rule_at(const Rows& rows, std::size_t row) {
  return {.id = rows.string(row, 0),
          .entity_type = rows.string(row, 1),
          .teams = texts_of(rows.text(row, 2)),
          .tags = texts_of(rows.text(row, 3)),
          .actions = texts_of(rows.text(row, 4)),
          .attributes = attributes_of(rows.text(row, 5))};
}

std::string rule_mistake(const AbacRule& rule) {
  if (rule.entity_type.empty()) return "a rule has an entity type";
  if (rule.teams.empty()) return "a rule has at least one team";
  if (rule.actions.empty()) return "a rule has at least one action";
  for (const auto size :
       {rule.teams.size(), rule.tags.size(), rule.actions.size(), rule.attributes.size()}) {
    if (size > kMaxItems) return "a rule has at most 1,000 teams, tags, actions and attributes";
  }
  if (std::ranges::any_of(rule.attributes,
                          [](const auto& attribute) { return attribute.name.empty(); })) {
    return "an attribute of a rule has a name";
  }
  return {};
}

// Returns the actions of a type; those of all types for one that belongs to other products.
std::string actions_for(std::string_view entity_type) {
  const auto type = control_plane::entity_type_of(entity_type);
  std::vector<std::string> names;
  for (const auto one : control_plane::entity_types()) {
    if (type && one != *type && !control_plane::actions_on(*type).empty()) continue;
    for (const auto action : control_plane::actions_on(one)) {
      std::string name(to_string(action));
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
  }
  return join(names, ", ");
}

// Returns "users (65f1…), admins (65f2…)".
std::string list_of(const std::vector<Team>& teams) {
  std::vector<std::string> names;
  for (const Team& team : teams) {
    if (names.size() == kMaxShownTeams) {
      names.emplace_back("…");
      break;
    }
    names.push_back(team.name + " (" + team.id + ")");
  }
  return join(names, ", ");
}

}  // namespace

Result<void> check_rule(Connection& connection, std::int64_t account, const AbacRule& rule) {
  for (const auto& action : rule.actions) {
    if (control_plane::action_of(action)) continue;
    return fail(ErrorCode::invalid_argument,
                "there is no action " + shortened(action, kMaxShownName) + "; for " +
                    rule.entity_type + " there are " + actions_for(rule.entity_type));
  }
  const auto teams = list_teams(connection, account);
  if (!teams) return std::unexpected(teams.error());
  for (const auto& id : rule.teams) {
    if (std::ranges::find(*teams, id, &Team::id) != teams->end()) continue;
    return fail(ErrorCode::invalid_argument, "there is no team with the id " +
                                                 shortened(id, kMaxShownName) + "; there are " +
                                                 list_of(*teams));
  }
  return {};
}

Result<AbacRule> create_rule(Connection& connection, std::int64_t account, AbacRule rule,
                             Micros now) {
  if (auto mistake = rule_mistake(rule); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  rule.id = new_id();
  const auto teams = to_text(Json(rule.teams));
  const auto tags = to_text(Json(rule.tags));
  const auto actions = to_text(Json(rule.actions));
  const auto attributes = attributes_text(rule.attributes);
  const auto added = connection.run(
      kAddRule, {account, rule.id, rule.entity_type, teams, tags, actions, attributes, now});
  if (!added) return std::unexpected(added.error());
  return rule;
}

Result<AbacRule> find_rule(Connection& connection, std::int64_t account, std::string_view id) {
  const auto rows = connection.run(kRule, {account, id});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return fail(ErrorCode::not_found, "there is no rule " + std::string(id));
  return rule_at(*rows, 0);
}

Result<AbacRule> remove_rule(Connection& connection, std::int64_t account, std::string_view id) {
  auto rule = find_rule(connection, account, id);
  if (!rule) return rule;
  const auto removed = connection.run(kRemoveRule, {account, id});
  if (!removed) return std::unexpected(removed.error());
  return rule;
}

Result<std::vector<AbacRule>> list_rules(Connection& connection, std::int64_t account,
                                         std::string_view entity_type) {
  const auto rows = entity_type.empty() ? connection.run(kAllRules, {account})
                                        : connection.run(kRulesOfType, {account, entity_type});
  if (!rows) return std::unexpected(rows.error());
  std::vector<AbacRule> rules;
  for (std::size_t row = 0; row < rows->size(); ++row) rules.push_back(rule_at(*rows, row));
  return rules;
}

std::span<const Statement> rule_statements() {
  return kRuleStatements;
}

}  // namespace gitops::control_plane_server
