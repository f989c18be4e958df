#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/control_plane/graphql.hpp"

namespace gitops::app_proxy {

using control_plane::AbacRule;

// Types of entities in rules, by the control plane's names.
enum class EntityType {
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

// Actions that a rule may allow, by the control plane's names.
enum class Action {
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

// The entity of an action, as rules see it. An unknown attribute is empty and matches no rule that
// requires it.
struct Entity {
  EntityType type = EntityType::gitops_applications;
  std::string cluster = {};
  std::string git_source = {};
  std::string entity_namespace = {};
  std::string runtime = {};
  std::string product_name = {};
  std::string environment_name = {};
  std::string environment_kind = {};
  std::map<std::string, std::string> labels = {};
};

// True when one of the rules lets a member of these teams act. A rule matches when it names a team
// and the action, and when for each kind of attribute in it (for labels: each key) one of its
// values is the entity's. SYNC includes REFRESH. Rules about unknown names match nothing. Pure.
bool allows(const std::vector<AbacRule>& rules, const std::vector<std::string>& teams,
            Action action, const Entity& entity);

}  // namespace gitops::app_proxy
