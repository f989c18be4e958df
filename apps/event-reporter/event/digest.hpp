#pragma once

#include <string_view>

#include "event-reporter/ledger/digest.hpp"

namespace gitops::reporter {

// Returns the digest of the parts of an Application whose change is reported. It leaves out the
// fields that Argo CD rewrites at each refresh (status.reconciledAt, status.observedAt, the refresh
// and hydrate annotations, the times of conditions) and the API server's bookkeeping
// (resourceVersion, generation, generateName, managedFields, the last-applied-configuration
// annotation).
Digest change_digest(std::string_view application);

// Returns the digest of an object of another kind. It leaves out apiVersion and kind, which items of
// lists may lack, the API server's bookkeeping (as above), status.observedGeneration and the times
// of conditions.
Digest object_digest(std::string_view object);

// Returns the digest of the nodes of a resource-tree response, in any order. The response must be
// JSON.
Digest tree_digest(std::string_view tree);

}  // namespace gitops::reporter
