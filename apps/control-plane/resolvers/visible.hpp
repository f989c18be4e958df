#pragma once

#include <optional>

#include "common/store/connection.hpp"
#include "control-plane/accounts/visibility.hpp"
#include "control-plane/views/object_query.hpp"

// Visibility in the queries of Applications.
namespace gitops::control_plane_server {

// Limits a list to visible Applications. The filter gets the conditions that a statement can check, and `accepts` decides
// the rest, so that pages stay full. False: nothing is visible, so the list is empty.
bool limit_to_visible(ObjectList& list, const Visibility& visibility);

// Returns the Application of that name, or one of several, that is visible; nothing when there is none.
Result<std::optional<ObjectRow>> find_visible(store::Connection& connection, std::int64_t account,
                                              const ObjectName& name, const Visibility& visibility);

}  // namespace gitops::control_plane_server
