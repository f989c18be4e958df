#include "control-plane/accounts/visibility.hpp"

#include <algorithm>
#include <utility>

#include "control-plane/accounts/teams.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::string_view kProductMark = "codefresh.io/product";
// Argo CD marks the objects that it deploys with one of the two.
constexpr std::string_view kTrackingId = "argocd.argoproj.io/tracking-id";
constexpr std::string_view kInstanceLabel = "app.kubernetes.io/instance";

bool is_view_rule(const AbacRule& rule) {
  return rule.entity_type == kApplicationEntity &&
         std::ranges::find(rule.actions, kViewAction) != rule.actions.end();
}

// A label in a rule: a key and a value, or a key alone, which any value fits.
struct LabelCondition {
  std::string_view key;
  std::optional<std::string_view> value;
};
LabelCondition label_condition(const AbacRule::Attribute& attribute) {
  if (attribute.key && !attribute.key->empty()) {
    if (attribute.value.empty()) return {.key = *attribute.key, .value = {}};
    return {.key = *attribute.key, .value = attribute.value};
  }
  const std::string_view text = attribute.value;
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return {.key = text, .value = {}};
  return {.key = text.substr(0, equals), .value = text.substr(equals + 1)};
}

// Returns "gs" for "gs:argoproj.io/Application:argocd/shop" and for "argocd_gs:…", the form of an Application outside of
// Argo CD's namespace.
std::string_view git_source_of(JsonView metadata) {
  const auto id = metadata["annotations"][kTrackingId].text();
  auto name = id.substr(0, id.find(':'));
  if (name.empty()) name = metadata["labels"][kInstanceLabel].text();
  const auto mark = name.find('_');  // not valid in names
  return mark == std::string_view::npos ? name : name.substr(mark + 1);
}

std::string_view product_of(JsonView metadata) {
  const auto name = metadata["annotations"][kProductMark].text();
  return name.empty() ? metadata["labels"][kProductMark].text() : name;
}

bool is_met(const AbacRule::Attribute& attribute, const ObjectState& state, JsonView metadata) {
  if (attribute.name == "LABEL") {
    const auto wanted = label_condition(attribute);
    const auto label = metadata["labels"][wanted.key];
    return !wanted.key.empty() && label.is_text() &&
           (!wanted.value || label.text() == *wanted.value);
  }
  const auto is_value = [&attribute](std::string_view own) {
    return !own.empty() && own == attribute.value;
  };
  if (attribute.name == "RUNTIME") return is_value(state.key.runtime);
  if (attribute.name == "NAMESPACE") return is_value(state.key.object_namespace);
  if (attribute.name == "CLUSTER") return is_value(state.destination);
  if (attribute.name == "GIT_SOURCE") return is_value(git_source_of(metadata));
  if (attribute.name == "PRODUCT_NAME") return is_value(product_of(metadata));
  return false;  // of other entities
}

// Returns whether two attributes are alternatives of one condition.
bool are_alternatives(const AbacRule::Attribute& a, const AbacRule::Attribute& b) {
  return a.name == b.name &&
         (a.name != "LABEL" || label_condition(a).key == label_condition(b).key);
}

bool fits(const AbacRule& rule, const ObjectState& state, JsonView metadata) {
  return std::ranges::all_of(rule.attributes, [&](const auto& condition) {
    return std::ranges::any_of(rule.attributes, [&](const auto& alternative) {
      return are_alternatives(condition, alternative) && is_met(alternative, state, metadata);
    });
  });
}

}  // namespace

Visibility::Visibility(std::span<const AbacRule> rules, std::span<const std::string> teams) {
  is_everything_ = std::ranges::none_of(rules, is_view_rule);
  for (const auto& rule : rules) {
    const bool names_a_team = std::ranges::any_of(teams, [&rule](const auto& team) {
      return std::ranges::find(rule.teams, team) != rule.teams.end();
    });
    if (!is_view_rule(rule) || !names_a_team) continue;
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
  return is_everything_ || std::ranges::any_of(rules_, [&](const AbacRule& rule) {
           return fits(rule, state, application["metadata"]);
         });
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
      const auto label = label_condition(condition);
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
  const auto rules = list_rules(connection, account, kApplicationEntity);
  if (!rules) return std::unexpected(rules.error());
  const auto teams = team_ids_of(connection, account, caller.user_id);
  if (!teams) return std::unexpected(teams.error());
  return Visibility(*rules, *teams);
}

Result<std::vector<AbacRule>> with_default_view(store::Connection& connection, std::int64_t account,
                                                std::vector<AbacRule> rules) {
  if (std::ranges::any_of(rules, is_view_rule)) return rules;
  auto teams = list_teams(connection, account);
  if (!teams) return std::unexpected(std::move(teams.error()));
  AbacRule rule{.id = "default-view",
                .entity_type = std::string(kApplicationEntity),
                .teams = {},
                .tags = {},
                .actions = {std::string(kViewAction)},
                .attributes = {}};
  for (const auto& team : *teams) {
    if (team.name == kUsersTeam) rule.teams.push_back(team.id);
  }
  rules.push_back(std::move(rule));
  return rules;
}

}  // namespace gitops::control_plane_server
