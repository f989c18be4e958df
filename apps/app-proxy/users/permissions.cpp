#include "app-proxy/users/permissions.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace gitops::app_proxy {
namespace {

constexpr std::array kTypes = {
    std::pair{EntityType::gitops_applications, std::string_view("gitopsApplications")},
    std::pair{EntityType::workflows, std::string_view("workflows")},
    std::pair{EntityType::workflow_templates, std::string_view("workflowTemplates")},
    std::pair{EntityType::products, std::string_view("products")},
    std::pair{EntityType::environments, std::string_view("environments")},
    std::pair{EntityType::promotion_flows, std::string_view("promotionFlows")},
    std::pair{EntityType::clusters, std::string_view("clusters")},
};
constexpr auto kTypeList = [] {
  std::array<EntityType, kTypes.size()> list{};
  for (std::size_t i = 0; i < kTypes.size(); ++i) list[i] = kTypes[i].first;
  return list;
}();

// Names in the order of the enumerators.
constexpr std::array<std::string_view, 24> kActions = {
    "VIEW",
    "CREATE",
    "REFRESH",
    "SYNC",
    "TERMINATE_SYNC",
    "APP_ROLLBACK",
    "DELETE_RESOURCE",
    "EXEC_TO_POD",
    "VIEW_POD_LOGS",
    "ROLLOUT_PAUSE",
    "ROLLOUT_RESUME",
    "ROLLOUT_PROMOTE_FULL",
    "ROLLOUT_SKIP_CURRENT_STEP",
    "ROLLOUT_ABORT",
    "ROLLOUT_RETRY",
    "RESTART",
    "RESUBMIT",
    "STOP",
    "TERMINATE",
    "ACCESS_ARTIFACTS",
    "ACCESS_LOGS",
    "TRIGGER_PROMOTION",
    "RETRY_RELEASE",
    "PROMOTE_TO",
};
static_assert(kActions.size() == static_cast<std::size_t>(Action::promote_to) + 1);

bool holds(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

// Returns the entity's value of an attribute; nullopt when it has none.
std::optional<std::string_view> value_of(const Entity& entity,
                                         const AbacRule::Attribute& attribute) {
  constexpr std::array kFields = {
      std::pair{std::string_view("CLUSTER"), &Entity::cluster},
      std::pair{std::string_view("GIT_SOURCE"), &Entity::git_source},
      std::pair{std::string_view("NAMESPACE"), &Entity::entity_namespace},
      std::pair{std::string_view("RUNTIME"), &Entity::runtime},
      std::pair{std::string_view("PRODUCT_NAME"), &Entity::product_name},
      std::pair{std::string_view("ENVIRONMENT_NAME"), &Entity::environment_name},
      std::pair{std::string_view("ENVIRONMENT_KIND"), &Entity::environment_kind},
  };
  if (attribute.name == "LABEL") {
    const auto label = entity.labels.find(attribute.key);
    if (label == entity.labels.end()) return std::nullopt;
    return label->second;
  }
  for (const auto& [name, field] : kFields) {
    if (name != attribute.name) continue;
    if ((entity.*field).empty()) return std::nullopt;
    return entity.*field;
  }
  return std::nullopt;
}

bool fits(const AbacRule& rule, const Entity& entity) {
  return std::ranges::all_of(rule.attributes, [&](const AbacRule::Attribute& wanted) {
    const auto has = value_of(entity, wanted);
    return has && std::ranges::any_of(rule.attributes, [&](const AbacRule::Attribute& other) {
             return other.name == wanted.name && other.key == wanted.key && other.value == *has;
           });
  });
}

}  // namespace

std::span<const EntityType> entity_types() {
  return kTypeList;
}

std::string_view to_string(EntityType type) {
  const auto* found = std::ranges::find(kTypes, type, &decltype(kTypes)::value_type::first);
  return found == kTypes.end() ? std::string_view() : found->second;
}

std::string_view to_string(Action action) {
  return kActions.at(static_cast<std::size_t>(action));
}

bool allows(const std::vector<AbacRule>& rules, const std::vector<std::string>& teams,
            Action action, const Entity& entity) {
  return std::ranges::any_of(rules, [&](const AbacRule& rule) {
    const bool names_action =
        holds(rule.actions, to_string(action)) ||
        (action == Action::refresh && holds(rule.actions, to_string(Action::sync)));
    return names_action &&
           std::ranges::any_of(teams, [&](const auto& team) { return holds(rule.teams, team); }) &&
           fits(rule, entity);
  });
}

}  // namespace gitops::app_proxy
