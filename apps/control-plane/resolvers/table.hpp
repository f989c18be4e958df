#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "control-plane/resolvers/field_row.hpp"

namespace gitops::control_plane_server {

// The one list of all fields of Query and Mutation: who may ask for each, and its function. A new field is a line of
// schema.graphql and a row in the file of its domain.
std::vector<FieldRow> table(Dependencies& dependencies);

// These rows behind the checks of their permissions, and all object types of schema.graphql: what Engine::make() takes.
// It refuses a field of the schema without a row.
graphql::Resolvers resolvers(const std::vector<FieldRow>& rows);

// Who must ask for a field of a root type. Fields that the table does not have, as __schema, need a member; __typename
// does not.
Permission permission_of(const std::vector<FieldRow>& rows, RootType root, std::string_view field);
// Why this caller may not ask; nothing when it may. Null: nobody is known by the credential.
std::optional<Error> refusal(Permission permission, const Caller* caller);

// The text of schema.graphql, and the names of its object types but Query and Mutation.
std::string_view schema_text();
std::vector<std::string_view> object_types(std::string_view schema);

}  // namespace gitops::control_plane_server
