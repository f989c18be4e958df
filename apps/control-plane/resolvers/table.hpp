#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

class AuditLog;

// Returns all fields of Query, Mutation and Subscription with their permissions and functions. A new field needs a line in
// schema.graphql and a row in the file of its domain.
std::vector<FieldRow> table(Dependencies& dependencies);

// Returns the argument of Engine::make(): these rows behind the checks of their permissions, and all object types of
// schema.graphql. Engine::make() refuses a field of the schema without a row. Each change has an entry in `audit`; null:
// none. It outlives the engine.
graphql::Resolvers resolvers(const std::vector<FieldRow>& rows, AuditLog* audit = nullptr);

// Returns the permission that a field of a root type requires. Fields outside the table, such as __schema, require a
// member; __typename requires none.
Permission permission_of(const std::vector<FieldRow>& rows, RootType root, std::string_view field);
// Returns the error for a caller without the permission; nothing when it has it. A null caller is unauthenticated.
std::optional<Error> refusal(Permission permission, const Caller* caller);
// Returns the error for a caller without the permission of the field, or for an API key without one of its scopes.
// Fields outside the table require the scope `read`.
std::optional<Error> field_refusal(const std::vector<FieldRow>& rows, RootType root,
                                   std::string_view field, const Caller* caller);

// Returns the text of schema.graphql, and the names of its object types except those three.
std::string_view schema_text();
std::vector<std::string_view> object_types(std::string_view schema);

}  // namespace gitops::control_plane_server
