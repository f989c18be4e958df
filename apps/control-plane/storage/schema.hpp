#pragma once

#include <span>

#include "common/store/migration.hpp"

namespace gitops::control_plane_server {

// The schema's steps, for both engines; the texts lie in storage/migrations/*.sql and are embedded.
std::span<const store::Migration> migrations();

}  // namespace gitops::control_plane_server
