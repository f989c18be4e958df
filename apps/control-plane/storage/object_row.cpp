#include "control-plane/storage/object_row.hpp"

namespace gitops::control_plane_server {

ObjectState object_state(const store::Rows& rows, std::size_t row, std::size_t first) {
  std::size_t at = first;
  const auto number = [&] { return rows.number(row, at++); };
  const auto text = [&] { return rows.string(row, at++); };
  ObjectState state;
  state.id = number();
  auto& key = state.key;
  key.runtime = text();
  key.origin = static_cast<Origin>(number());
  for (auto* part : {&key.owner_uid, &key.cluster, &key.group, &key.kind, &key.object_namespace,
                     &key.name, &state.version, &state.uid}) {
    *part = text();
  }
  state.sequence = number();
  for (auto* part : {&state.event_id, &state.manager.name, &state.manager.application_namespace,
                     &state.manager.uid, &state.destination, &state.revision}) {
    *part = text();
  }
  state.sync = static_cast<SyncStatus>(number());
  state.health = static_cast<HealthStatus>(number());
  state.health_message = text();
  state.phase = static_cast<Phase>(number());
  for (auto* value : {&state.history_id, &state.created_at, &state.changed_at, &state.seen_at}) {
    *value = number();
  }
  state.presence = static_cast<Presence>(number());
  for (auto* part : {&state.entity, &state.labels_digest, &state.body_digest}) *part = text();
  return state;
}

}  // namespace gitops::control_plane_server
