#pragma once

#include <cstddef>
#include <string_view>

#include "common/store/rows.hpp"
#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

// The columns of the table `object` after id and account, in the order of object_state().
inline constexpr std::string_view kObjectColumns =
    "runtime, origin, owner_uid, cluster, api_group, kind, namespace, name, version, uid, "
    "sequence, event_id, manager_name, manager_namespace, manager_uid, destination, revision, "
    "sync, health, health_message, phase, history_id, created_at, changed_at, seen_at, presence, "
    "entity, labels_digest, body_digest";

// The same columns for a statement that calls the table `o`, because other tables have columns of these names.
inline constexpr std::string_view kObjectColumnsOfO =
    "o.runtime, o.origin, o.owner_uid, o.cluster, o.api_group, o.kind, o.namespace, o.name, "
    "o.version, o.uid, o.sequence, o.event_id, o.manager_name, o.manager_namespace, "
    "o.manager_uid, o.destination, o.revision, o.sync, o.health, o.health_message, o.phase, "
    "o.history_id, o.created_at, o.changed_at, o.seen_at, o.presence, o.entity, o.labels_digest, "
    "o.body_digest";

// Returns the state in a row whose columns from `first` on are id and kObjectColumns.
ObjectState object_state(const store::Rows& rows, std::size_t row, std::size_t first = 0);

}  // namespace gitops::control_plane_server
