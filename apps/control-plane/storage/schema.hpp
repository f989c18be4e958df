#pragma once

#include <span>

#include "common/store/migration.hpp"

namespace gitops::control_plane_server {

// Returns the steps of the schema for both engines. The texts are in storage/migrations/*.sql and are embedded.
std::span<const store::Migration> migrations();

}  // namespace gitops::control_plane_server
