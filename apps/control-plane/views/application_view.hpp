#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "control-plane/views/entity_view.hpp"

// GraphQL views of Applications. Pure.
namespace gitops::control_plane_server {

// Appends the JSON of type Application, also for an ApplicationSet and other objects, with the members that they have.
// Without a body it contains only the data of the row.
// The resources, which may be thousands, are written for `whole` alone.
enum class ApplicationParts { without_resources, whole };
void append_application(std::string& out, const ObjectState& state, const ParsedBody& body,
                        const ViewContext& context,
                        ApplicationParts parts = ApplicationParts::without_resources);
// The members of type Application that need the body.
inline constexpr std::initializer_list<std::string_view> kApplicationBodyFields{
    "labels",      "annotations",    "description",   "appsRelations",  "source",      "errors",
    "path",        "repoURL",        "size",          "status",         "destination", "specSource",
    "specSources", "include",        "exclude",       "operationState", "sync",        "syncPolicy",
    "isHelmApp",   "isMultiSourced", "relatedGroups", "project"};

// Returns the source of an Application's path and commits: the first one without a `ref`; with a hydrator its
// syncSource.
JsonView main_source(JsonView application);
// Returns whether changes in Git are synchronized by themselves: a word of the enum SyncPolicy.
std::string_view sync_policy(JsonView application);
// Writes the members of type ArgoCDApplicationSpecSource.
void write_spec_source(ObjectJson& out, JsonView source);
// Writes the sources of the Application, which releases show, too.
void write_spec_sources(ObjectJson& out, JsonView application);
void write_destination(ObjectJson& out, const ObjectState& state, JsonView application);
void write_operation_state(ObjectJson& out, JsonView application);

// Returns the groups of an Application, from its annotation.
std::vector<std::string_view> application_groups(JsonView application);

}  // namespace gitops::control_plane_server
