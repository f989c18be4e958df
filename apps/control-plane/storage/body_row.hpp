#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

// Returns the body in a row whose columns from `first` on are codec, size and packed; nothing when they are NULL.
Result<std::optional<ObjectBody>> body_of_row(const store::Rows& rows, std::size_t row,
                                              std::size_t first);

// Returns the texts of an object of this account. Errors besides those of Connection: not_found, and invalid_data for a
// damaged body.
Result<ObjectBody> read_body(store::Connection& connection, std::int64_t account,
                             std::int64_t object);

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> body_statements();

}  // namespace gitops::control_plane_server
