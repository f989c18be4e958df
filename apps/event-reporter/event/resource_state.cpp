#include "event-reporter/event/resource_state.hpp"

#include <string_view>
#include <utility>

#include "event-reporter/event/manifest.hpp"

namespace gitops::reporter {
namespace {

// Returns the manifest of a live hook, which managed-resources leaves out, from its node in the
// tree.
std::string live_stub(const ResourceId& id, JsonView node) {
  const auto uid = node["uid"].text();
  return uid.empty() ? std::string{} : stub(id, uid, node["resourceVersion"].text());
}

// Returns the health; absent when the tree does not contain it.
std::optional<Health> health_in_tree(JsonView node) {
  if (!node.exists()) return std::nullopt;
  if (node["health"].exists()) return read_health(node["health"]);
  const bool lives = !node["uid"].text().empty() || !node["resourceVersion"].text().empty() ||
                     node["createdAt"].exists();
  return lives ? std::nullopt : std::optional(Health{"Missing", ""});
}

// Returns whether Argo CD reports the resource's state. After a failed comparison an absent object
// is one that could not be read.
bool is_known(JsonView status, const std::string& identity, const AppView& app,
              std::string_view live, bool managed, const TreeView* tree) {
  const bool health_told = status["health"].exists();
  const bool in_tree = tree != nullptr && tree->find(identity).exists();
  // Argo CD's responses are newer than the Application, unless the resource is a hook: the next state
  // of the Application shows the reason.
  if (!managed && !(in_tree && status["hook"].is_true())) return false;
  if (app.was_compared()) return health_told || tree != nullptr;
  return !live.empty() && (health_told || in_tree);
}

}  // namespace

std::string_view ResourceState::keep(std::string manifest) {
  made = std::make_shared<const std::string>(std::move(manifest));
  return *made;
}

Health read_health(JsonView health) {
  return {.status = std::string(health["status"].text()),
          .message = std::string(health["message"].text())};
}

ResourceState resource_state(JsonView status, const std::string& identity, const AppView& app,
                             const ManagedView& managed, const TreeView* tree,
                             bool app_being_deleted) {
  ResourceState state{.id = ResourceId::of(status),
                      .sync_status = std::string(status["status"].text()),
                      .health = resource_health(status, identity, tree),
                      .desired = {},
                      .actual = {},
                      .object = {}};
  const auto states = managed.find(identity);
  if (states) {
    state.desired = states->desired;
    state.actual = states->live;
  } else if (tree != nullptr) {
    state.actual = state.keep(live_stub(state.id, tree->find(identity)));
  }
  if (!state.actual.empty()) {
    state.object = state.actual;
  } else if (!state.desired.empty()) {
    state.object = state.keep(with_namespace(state.desired, state.id.ns));
  } else {
    state.object = state.keep(stub(state.id));
  }
  state.known =
      app_being_deleted || is_known(status, identity, app, state.actual, states.has_value(), tree);
  const bool superfluous =
      status["requiresPruning"].is_true() && !state.actual.empty() && app.was_compared();
  if (superfluous || app_being_deleted) {
    state.desired = {};
    state.actual = {};
  }
  return state;
}

std::optional<Health> resource_health(JsonView status, const std::string& identity,
                                      const TreeView* tree) {
  if (tree == nullptr) {
    return status["health"].exists() ? std::optional(read_health(status["health"])) : std::nullopt;
  }
  if (auto health = health_in_tree(tree->find(identity))) return health;
  // A synced resource exists, so it is no longer Missing.
  if (status["status"].text() == "Synced") return Health{"Healthy", ""};
  return std::nullopt;
}

}  // namespace gitops::reporter
