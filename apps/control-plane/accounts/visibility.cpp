#include "control-plane/accounts/visibility.hpp"

#include <algorithm>
#include <utility>

#include "control-plane/accounts/teams.hpp"

namespace gitops::control_plane_server {
namespace {

bool is_view_rule(const AbacRule& rule) {
  return rule.entity_type == kApplicationEntity &&
         control_plane::names_action(rule, control_plane::Action::view);
}

}  // namespace

control_plane::Entity entity_of(const ObjectState& state, JsonView application) {
  auto entity = control_plane::application_entity(application, state.key.runtime);
  // The columns by which statements select.
  entity.entity_namespace = state.key.object_namespace;
  entity.cluster = state.destination;
  return entity;
}

Visibility::Visibility(std::span<const AbacRule> rules, std::span<const std::string> teams) {
  is_everything_ = std::ranges::none_of(rules, is_view_rule);
  for (const auto& rule : rules) {
    if (!is_view_rule(rule) || !control_plane::names_team_of(rule, teams)) continue;
    is_everything_ = is_everything_ || rule.attributes.empty();
    rules_.push_back(rule);
  }
  if (is_everything_) rules_.clear();
}

bool Visibility::needs_body() const {
  return std::ranges::any_of(rules_, [](const AbacRule& rule) {
    return std::ranges::any_of(rule.attributes, [](const auto& attribute) {
      return attribute.name == "LABEL" || attribute.name == "GIT_SOURCE" ||
             attribute.name == "PRODUCT_NAME";
    });
  });
}

bool Visibility::shows(const ObjectState& state, JsonView application) const {
  if (is_everything_) return true;
  const auto entity = entity_of(state, application);
  return std::ranges::any_of(
      rules_, [&](const AbacRule& rule) { return control_plane::fits(rule, entity); });
}

std::optional<std::vector<std::string>> Visibility::values_of(std::string_view attribute) const {
  if (is_everything_) return std::nullopt;
  std::vector<std::string> values;
  for (const auto& rule : rules_) {
    const auto before = values.size();
    for (const auto& condition : rule.attributes) {
      if (condition.name != attribute) continue;
      if (attribute != "LABEL") {
        values.push_back(condition.value);
        continue;
      }
      const auto label = control_plane::label_condition(condition);
      auto text = std::string(label.key);
      if (label.value) text += "=" + std::string(*label.value);
      values.push_back(std::move(text));
    }
    if (values.size() == before) return std::nullopt;
  }
  return values;
}

Result<Visibility> visibility_of(store::Connection& connection, const Caller& caller) {
  if (caller.is_runtime() || caller.is_admin) return Visibility();
  const auto account = caller.account->number;
  auto rules = list_rules(connection, account, kApplicationEntity);
  // The team of all users has every user, but only those service accounts that were put into it.
  if (rules && caller.is_service_account) {
    rules = with_default_view(connection, account, std::move(*rules));
  }
  if (!rules) return std::unexpected(std::move(rules.error()));
  const auto teams = team_ids_of(connection, account, caller.user_id);
  if (!teams) return std::unexpected(teams.error());
  return Visibility(*rules, *teams);
}

Result<std::vector<AbacRule>> with_default_view(store::Connection& connection, std::int64_t account,
                                                std::vector<AbacRule> rules) {
  if (std::ranges::any_of(rules, is_view_rule)) return rules;
  auto teams = list_teams(connection, account);
  if (!teams) return std::unexpected(std::move(teams.error()));
  AbacRule rule{.id = std::string(kDefaultViewRule),
                .entity_type = std::string(kApplicationEntity),
                .teams = {},
                .tags = {},
                .actions = {std::string(to_string(control_plane::Action::view))},
                .attributes = {}};
  for (const auto& team : *teams) {
    if (team.name == kUsersTeam) rule.teams.push_back(team.id);
  }
  rules.push_back(std::move(rule));
  return rules;
}

}  // namespace gitops::control_plane_server
