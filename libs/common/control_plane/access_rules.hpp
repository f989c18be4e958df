#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Access rules of an account and their evaluation. The control plane limits its lists by them and answers who may do
// what; app-proxy checks actions. Both call the same functions, so their answers agree. Pure.
namespace gitops {
class JsonView;
}

namespace gitops::control_plane {

// A rule of attribute-based access control: members of these teams may perform these actions on entities of this type
// with matching attributes.
struct AbacRule {
  struct Attribute {
    std::string name;                // "CLUSTER", "LABEL"
    std::optional<std::string> key;  // of a label
    std::string value;

    bool operator==(const Attribute&) const = default;
  };
  std::string id;
  std::string entity_type;           // "gitopsApplications"
  std::vector<std::string> teams;    // their ids
  std::vector<std::string> tags;     // stored for clients; no part of the evaluation
  std::vector<std::string> actions;  // "SYNC"
  std::vector<Attribute> attributes;

  bool operator==(const AbacRule&) const = default;
};

// Types of entities in rules, by the control plane's names.
enum class EntityType : std::uint8_t {
  gitops_applications,
  workflows,
  workflow_templates,
  products,
  environments,
  promotion_flows,
  clusters,
};
std::span<const EntityType> entity_types();
std::string_view to_string(EntityType type);
std::optional<EntityType> entity_type_of(std::string_view name);

// Actions that a rule may allow, by the control plane's names.
enum class Action : std::uint8_t {
  view,
  create,
  refresh,
  sync,
  terminate_sync,
  app_rollback,
  delete_resource,
  exec_to_pod,
  view_pod_logs,
  rollout_pause,
  rollout_resume,
  rollout_promote_full,
  rollout_skip_current_step,
  rollout_abort,
  rollout_retry,
  restart,
  resubmit,
  stop,
  terminate,
  access_artifacts,
  access_logs,
  trigger_promotion,
  retry_release,
  promote_to,
};
std::string_view to_string(Action action);
std::optional<Action> action_of(std::string_view name);
// Returns the actions that make sense for a type.
std::span<const Action> actions_on(EntityType type);

// The entity of an action, as rules see it. An unknown attribute is empty and matches no rule that requires it.
struct Entity {
  EntityType type = EntityType::gitops_applications;
  std::string cluster = {};
  std::string git_source = {};
  std::string entity_namespace = {};
  std::string runtime = {};
  std::string product_name = {};
  std::string environment_name = {};
  std::string environment_kind = {};
  std::map<std::string, std::string, std::less<>> labels = {};
};

// URL by which Argo CD names the cluster that it runs in.
inline constexpr std::string_view kInCluster = "https://kubernetes.default.svc";

// Makes the entity of an Application from its JSON. CLUSTER is its destination, NAMESPACE its own namespace, GIT_SOURCE
// the Application that it is part of, PRODUCT_NAME the annotation codefresh.io/product or else the label of that name.
Entity application_entity(JsonView application, std::string_view runtime);
// Makes the entity of an object of the runtime's own cluster, such as a Workflow.
Entity own_cluster_entity(EntityType type, JsonView object, std::string_view runtime);

// The condition of a label in a rule: a key and a value, or a key alone, which any value fits. It is written with a key
// of its own, or as "key=value" or "key" in the value.
struct LabelCondition {
  std::string_view key;
  std::optional<std::string_view> value;
};
LabelCondition label_condition(const AbacRule::Attribute& attribute);

// Returns whether the rule's attributes fit an entity of its type: for each kind of attribute, and each key of a label,
// one of the rule's values is the entity's. An attribute with an unknown name fits nothing.
bool fits(const AbacRule& rule, const Entity& entity);
// Returns whether the rule names one of these teams.
bool names_team_of(const AbacRule& rule, std::span<const std::string> teams);
// Returns whether the rule names the action. SYNC includes REFRESH.
bool names_action(const AbacRule& rule, Action action);

// Returns the first rule that lets a member of these teams act, or null. It points into `rules`.
const AbacRule* allowing_rule(std::span<const AbacRule> rules, std::span<const std::string> teams,
                              Action action, const Entity& entity);

}  // namespace gitops::control_plane
