#pragma once

#include <string>
#include <string_view>

#include "event-reporter/ledger/resource_id.hpp"
#include "k8s-client/resource.hpp"

// Changes of manifests as text: the rest of a manifest stays as it was received.
namespace gitops::reporter {

// Replaces every value of data and stringData of a v1 Secret, and of their copies in the last-applied
// annotation, by plus signs, as Argo CD does; masked values stay as they are. Returns other objects
// unchanged.
std::string mask_secret(std::string_view manifest);

// Sets metadata.namespace; an empty `ns` leaves the manifest unchanged.
std::string with_namespace(std::string_view manifest, std::string_view ns);

// Returns the manifest of an object of which only the name is known.
std::string stub(const ResourceId& id);
// Returns such a manifest with uid and resourceVersion.
std::string stub(const ResourceId& id, std::string_view uid, std::string_view resource_version);
std::string application_stub(const k8s::ObjectKey& key, std::string_view uid,
                             std::string_view resource_version);

// Returns the object with only the parts that its events need when memory is short: apiVersion,
// kind, name, namespace, uid, resourceVersion, times of creation and deletion, labels, and the
// annotations by which Argo CD knows an Application's parent.
std::string identity_stub(std::string_view object);

}  // namespace gitops::reporter
