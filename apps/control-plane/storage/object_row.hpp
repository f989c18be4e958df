#pragma once

#include <cstddef>
#include <string_view>

#include "common/store/rows.hpp"
#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

// The columns of the table `object` behind id and account, in the order of object_state().
inline constexpr std::string_view kObjectColumns =
    "runtime, origin, owner_uid, cluster, api_group, kind, namespace, name, version, uid, "
    "sequence, event_id, manager_name, manager_namespace, manager_uid, destination, revision, "
    "sync, health, health_message, phase, history_id, created_at, changed_at, seen_at, presence, "
    "entity, labels_digest, body_digest";

// The state in a row whose columns from `first` on are id and kObjectColumns.
ObjectState object_state(const store::Rows& rows, std::size_t row, std::size_t first = 0);

}  // namespace gitops::control_plane_server
