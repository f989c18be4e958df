#include "control-plane/resolvers/rules.hpp"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/rules.hpp"
#include "control-plane/accounts/visibility.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;
using Json = nlohmann::json;

Result<graphql::Json> render_rule(const Result<AbacRule>& rule, const Account& account) {
  if (!rule) return std::unexpected(rule.error());
  return graphql::Json::trusted(to_text(rule_json(*rule, account)));
}

Task<Result<graphql::Json>> abac_rules(store::Database& database, Call& call) {
  const auto account = caller_of(call).account;
  const auto number = account_number(caller_of(call), call["accountId"].text());
  if (!number) co_return std::unexpected(number.error());
  const auto rules =
      co_await database.read(call.deadline(),
                             [number = *number, type = std::string(call["entityType"].text()),
                              is_runtime = caller_of(call).is_runtime()](
                                 store::Connection& db) -> Result<std::vector<AbacRule>> {
                               auto stored = list_rules(db, number, type);
                               if (!stored || !is_runtime || type != kApplicationEntity)
                                 return stored;
                               return with_default_view(db, number, std::move(*stored));
                             });
  if (!rules) co_return std::unexpected(rules.error());
  Json list = Json::array();
  for (const auto& rule : *rules) list.push_back(rule_json(rule, *account));
  co_return graphql::Json::trusted(to_text(list));
}

Task<Result<graphql::Json>> abac_rule(store::Database& database, Call& call) {
  const auto account = caller_of(call).account;
  const auto number = account_number(caller_of(call), call["accountId"].text());
  if (!number) co_return std::unexpected(number.error());
  const auto rule = co_await database.read(
      call.deadline(), [number = *number, id = std::string(call["id"].text())](
                           store::Connection& db) { return find_rule(db, number, id); });
  co_return render_rule(rule, *account);
}

AbacRule rule_of(graphql::InputView input) {
  AbacRule rule{.id = {},
                .entity_type = std::string(input["entityType"].text()),
                .teams = input["teams"].texts(),
                .tags = input["tags"].texts(),
                .actions = input["actions"].texts(),
                .attributes = {}};
  for (const auto item : input["attributes"].items()) {
    AbacRule::Attribute attribute{.name = std::string(item["name"].text()),
                                  .key = {},
                                  .value = std::string(item["value"].text())};
    if (item["key"].exists()) attribute.key = std::string(item["key"].text());
    rule.attributes.push_back(std::move(attribute));
  }
  return rule;
}

Task<Result<graphql::Json>> create_abac_rule(Dependencies& dependencies, Call& call) {
  const auto account = caller_of(call).account;
  const auto number = account_number(caller_of(call), call["accountId"].text());
  if (!number) co_return std::unexpected(number.error());
  const auto rule = co_await dependencies.database.write(
      call.deadline(),
      [number = *number, rule = rule_of(call["createAbacRuleInput"]),
       now = micros_at(wall_now())](store::Connection& db) -> Result<AbacRule> {
        if (auto checked = check_rule(db, number, rule); !checked) {
          return std::unexpected(std::move(checked.error()));
        }
        auto created = create_rule(db, number, rule, now);
        if (!created) return created;
        if (auto added = add_account_change(db, number, now); !added) {
          return std::unexpected(std::move(added.error()));
        }
        return created;
      });
  if (rule && dependencies.account_changed) dependencies.account_changed();
  co_return render_rule(rule, *account);
}

Task<Result<graphql::Json>> remove_abac_rule(Dependencies& dependencies, Call& call) {
  const auto account = caller_of(call).account;
  const auto number = account_number(caller_of(call), call["accountId"].text());
  if (!number) co_return std::unexpected(number.error());
  const auto rule = co_await dependencies.database.write(
      call.deadline(),
      [number = *number, id = std::string(call["id"].text()),
       now = micros_at(wall_now())](store::Connection& db) -> Result<AbacRule> {
        auto removed = remove_rule(db, number, id);
        if (!removed) return removed;
        if (auto added = add_account_change(db, number, now); !added) {
          return std::unexpected(std::move(added.error()));
        }
        return removed;
      });
  if (rule && dependencies.account_changed) dependencies.account_changed();
  co_return render_rule(rule, *account);
}

}  // namespace

Json rule_json(const AbacRule& rule, const Account& account) {
  Json attributes = Json::array();
  for (const auto& attribute : rule.attributes) {
    attributes.push_back({{"name", attribute.name},
                          {"key", attribute.key ? Json(*attribute.key) : Json()},
                          {"value", attribute.value}});
  }
  return {{"id", rule.id},
          {"accountId", account.id},
          {"entityType", rule.entity_type},
          {"teams", rule.teams},
          {"tags", rule.tags},
          {"actions", rule.actions},
          {"attributes", std::move(attributes)}};
}

std::vector<FieldRow> rule_rows(Dependencies& dependencies) {
  using enum Permission;
  auto& database = dependencies.database;
  return {
      read("abacRules", member, [&database](Call& call) { return abac_rules(database, call); }),
      read("abacRule", member, [&database](Call& call) { return abac_rule(database, call); }),
      change("createAbacRule", admin, {"createAbacRuleInput"},
             [&dependencies](Call& call) { return create_abac_rule(dependencies, call); }),
      change("removeAbacRule", admin, {"id"},
             [&dependencies](Call& call) { return remove_abac_rule(dependencies, call); }),
  };
}

}  // namespace gitops::control_plane_server
