#include "common/control_plane/access_rules.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/core/json_text.hpp"

namespace gitops::control_plane {
namespace {

constexpr std::string_view kProduct = "codefresh.io/product";
// Argo CD marks deployed objects with one of the two (argo-cd.readthedocs.io, "Resource Tracking").
constexpr std::string_view kTrackingId = "argocd.argoproj.io/tracking-id";
constexpr std::string_view kInstanceLabel = "app.kubernetes.io/instance";
constexpr std::string_view kLabel = "LABEL";

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

constexpr std::array kApplicationActions = {Action::view,
                                            Action::refresh,
                                            Action::sync,
                                            Action::terminate_sync,
                                            Action::app_rollback,
                                            Action::view_pod_logs,
                                            Action::rollout_pause,
                                            Action::rollout_resume,
                                            Action::rollout_promote_full,
                                            Action::rollout_skip_current_step,
                                            Action::rollout_abort,
                                            Action::rollout_retry,
                                            Action::restart,
                                            Action::delete_resource};
constexpr std::array kWorkflowActions = {
    Action::view,      Action::restart,          Action::resubmit,   Action::stop,
    Action::terminate, Action::access_artifacts, Action::access_logs};
constexpr std::array kTemplateActions = {Action::create};
constexpr std::array kProductActions = {Action::trigger_promotion, Action::retry_release};
constexpr std::array kEnvironmentActions = {Action::promote_to};
constexpr std::array kFlowActions = {Action::trigger_promotion};

bool holds(std::span<const std::string> list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

// Returns "gs" for "gs:argoproj.io/Application:argocd/shop". An Application outside of Argo CD's namespace is written
// "ns_gs".
std::string_view owner_of(JsonView metadata) {
  const auto id = metadata["annotations"][kTrackingId].text();
  auto name = id.substr(0, id.find(':'));
  if (name.empty()) name = metadata["labels"][kInstanceLabel].text();
  const auto mark = name.find('_');  // not valid in names
  return mark == std::string_view::npos ? name : name.substr(mark + 1);
}

// Returns the product. The annotation is the documented form; the label is used without it.
std::string_view product_of(JsonView metadata) {
  const auto name = metadata["annotations"][kProduct].text();
  return name.empty() ? metadata["labels"][kProduct].text() : name;
}

Entity entity_of(EntityType type, JsonView metadata, std::string_view runtime) {
  Entity entity{.type = type,
                .git_source = std::string(owner_of(metadata)),
                .entity_namespace = std::string(metadata["namespace"].text()),
                .runtime = std::string(runtime)};
  for (const auto& [key, value] : metadata["labels"].members()) {
    if (value.is_text()) entity.labels.emplace(key, value.text());
  }
  return entity;
}

// Returns the entity's value of an attribute that is no label; empty when it has none.
std::string_view value_of(const Entity& entity, std::string_view attribute) {
  constexpr std::array kFields = {
      std::pair{std::string_view("CLUSTER"), &Entity::cluster},
      std::pair{std::string_view("GIT_SOURCE"), &Entity::git_source},
      std::pair{std::string_view("NAMESPACE"), &Entity::entity_namespace},
      std::pair{std::string_view("RUNTIME"), &Entity::runtime},
      std::pair{std::string_view("PRODUCT_NAME"), &Entity::product_name},
      std::pair{std::string_view("ENVIRONMENT_NAME"), &Entity::environment_name},
      std::pair{std::string_view("ENVIRONMENT_KIND"), &Entity::environment_kind},
  };
  const auto* const found =
      std::ranges::find(kFields, attribute, &decltype(kFields)::value_type::first);
  return found == kFields.end() ? std::string_view() : entity.*(found->second);
}

bool is_met(const AbacRule::Attribute& attribute, const Entity& entity) {
  if (attribute.name == kLabel) {
    const auto wanted = label_condition(attribute);
    const auto label = entity.labels.find(wanted.key);
    return !wanted.key.empty() && label != entity.labels.end() &&
           (!wanted.value || label->second == *wanted.value);
  }
  const auto own = value_of(entity, attribute.name);
  return !own.empty() && own == attribute.value;
}

// Returns whether two attributes are alternatives of one condition.
bool are_alternatives(const AbacRule::Attribute& a, const AbacRule::Attribute& b) {
  return a.name == b.name && (a.name != kLabel || label_condition(a).key == label_condition(b).key);
}

}  // namespace

std::span<const EntityType> entity_types() {
  return kTypeList;
}

std::string_view to_string(EntityType type) {
  const auto* found = std::ranges::find(kTypes, type, &decltype(kTypes)::value_type::first);
  return found == kTypes.end() ? std::string_view() : found->second;
}

std::optional<EntityType> entity_type_of(std::string_view name) {
  const auto* found = std::ranges::find(kTypes, name, &decltype(kTypes)::value_type::second);
  if (found == kTypes.end()) return std::nullopt;
  return found->first;
}

std::string_view to_string(Action action) {
  return kActions.at(static_cast<std::size_t>(action));
}

std::optional<Action> action_of(std::string_view name) {
  const auto* found = std::ranges::find(kActions, name);
  if (found == kActions.end()) return std::nullopt;
  return static_cast<Action>(found - kActions.begin());
}

std::span<const Action> actions_on(EntityType type) {
  switch (type) {
    case EntityType::gitops_applications:
      return kApplicationActions;
    case EntityType::workflows:
      return kWorkflowActions;
    case EntityType::workflow_templates:
      return kTemplateActions;
    case EntityType::products:
      return kProductActions;
    case EntityType::environments:
      return kEnvironmentActions;
    case EntityType::promotion_flows:
      return kFlowActions;
    case EntityType::clusters:
      break;
  }
  return {};
}

Entity application_entity(JsonView application, std::string_view runtime) {
  const auto metadata = application["metadata"];
  auto entity = entity_of(EntityType::gitops_applications, metadata, runtime);
  const auto destination = application["spec"]["destination"];
  entity.cluster = destination["server"].text().empty() ? destination["name"].text()
                                                        : destination["server"].text();
  entity.product_name = product_of(metadata);
  return entity;
}

Entity own_cluster_entity(EntityType type, JsonView object, std::string_view runtime) {
  auto entity = entity_of(type, object["metadata"], runtime);
  entity.cluster = kInCluster;
  return entity;
}

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

bool fits(const AbacRule& rule, const Entity& entity) {
  return rule.entity_type == to_string(entity.type) &&
         std::ranges::all_of(rule.attributes, [&](const auto& condition) {
           return std::ranges::any_of(rule.attributes, [&](const auto& alternative) {
             return are_alternatives(condition, alternative) && is_met(alternative, entity);
           });
         });
}

bool names_team_of(const AbacRule& rule, std::span<const std::string> teams) {
  return std::ranges::any_of(teams, [&](const auto& team) { return holds(rule.teams, team); });
}

bool names_action(const AbacRule& rule, Action action) {
  return holds(rule.actions, to_string(action)) ||
         (action == Action::refresh && holds(rule.actions, to_string(Action::sync)));
}

const AbacRule* allowing_rule(std::span<const AbacRule> rules, std::span<const std::string> teams,
                              Action action, const Entity& entity) {
  const auto found = std::ranges::find_if(rules, [&](const AbacRule& rule) {
    return names_action(rule, action) && names_team_of(rule, teams) && fits(rule, entity);
  });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace gitops::control_plane
