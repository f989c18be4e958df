#pragma once

#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/time.hpp"
#include "event-reporter/event/digest.hpp"
#include "k8s-client/resource.hpp"

// The events of mode `resource` (docs/reference/events.md). The functions take and return text.
namespace gitops::reporter {

// The identity and version of an object, read from its text.
struct ResourceFacts {
  std::string uid;
  std::string resource_version;
  Digest digest{};  // object_digest()
};
// Reads the facts; invalid_data when the text is not a JSON object.
[[nodiscard]] Result<ResourceFacts> read_resource(std::string_view object);

// Returns the body that is posted. `object` is the JSON as the API server sent it; apiVersion and
// kind may be missing, as in items of lists. `cluster` is the URL of a managed cluster's API server,
// empty for the runtime's own cluster.
[[nodiscard]] std::string resource_event(std::string_view object, const k8s::Resource& resource,
                                         std::string_view cluster);
// Returns the body for a deleted object. `object` is its tombstone, `now` the deletion time of a
// tombstone without one.
[[nodiscard]] std::string deleted_resource_event(std::string_view object,
                                                 const k8s::Resource& resource,
                                                 std::string_view cluster, WallTime now);

// Returns the tombstone of an object whose deletion was not watched: name, namespace and uid.
[[nodiscard]] std::string resource_stub(const k8s::ObjectKey& key, std::string_view uid);

// Returns the event in its reduced form, for a control plane that responded with 413: the object
// keeps the fields that identify it, its owner references and its phase. Empty when the body cannot
// be reduced.
[[nodiscard]] std::string reduced_resource_event(std::string_view body);

}  // namespace gitops::reporter
