#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "control-plane/views/entity_view.hpp"

// Applications as GraphQL shows them. Pure.
namespace gitops::control_plane_server {

// Appends the JSON of type Application: also of an ApplicationSet and of other objects, of which it shows what they
// have. Without a body it shows what the row tells.
void append_application(std::string& out, const ObjectState& state, const ParsedBody& body,
                        const ViewContext& context);
// The members of type Application that need the body.
inline constexpr std::initializer_list<std::string_view> kApplicationBodyFields{
    "labels",      "annotations",    "description",  "appsRelations",  "source",      "errors",
    "path",        "repoURL",        "size",         "status",         "destination", "specSource",
    "specSources", "include",        "exclude",      "operationState", "sync",        "syncPolicy",
    "isHelmApp",   "isMultiSourced", "relatedGroups"};

// The source that an Application's path and commits are of: the first that has no `ref`; with a hydrator its
// syncSource.
JsonView main_source(JsonView application);
// Type ArgoCDApplicationSpecSource.
void write_spec_source(ObjectJson& out, JsonView source);
// Members of the Application that releases show too.
void write_spec_sources(ObjectJson& out, JsonView application);
void write_destination(ObjectJson& out, const ObjectState& state, JsonView application);
void write_operation_state(ObjectJson& out, JsonView application);

// The groups that an Application is in, by its annotation.
std::vector<std::string_view> application_groups(JsonView application);

}  // namespace gitops::control_plane_server
