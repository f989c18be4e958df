#pragma once

#include <optional>
#include <span>
#include <string>

#include "common/store/connection.hpp"
#include "control-plane/projection/object.hpp"
#include "control-plane/views/object_query.hpp"

// The manifests of a resource of an Application, as its last event had them.
namespace gitops::control_plane_server {

struct ResourceName {
  std::string group = {};  // empty: the core API
  std::string kind = {};
  std::string object_namespace = {};
  std::string name = {};
};

// Returns the row of a resource that an Application manages, also when it is gone; nothing: none was reported.
Result<std::optional<ObjectRow>> find_resource(store::Connection& connection, std::int64_t account,
                                               const ObjectState& application,
                                               const ResourceName& name);

// Appends the JSON of type ApplicationResourceManifests. Values of a Secret are replaced by numbers: equal values have
// the same one.
void append_manifests(std::string& out, const ObjectRow& resource);

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> manifest_statements();

}  // namespace gitops::control_plane_server
