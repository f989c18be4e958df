#pragma once

#include <string_view>

#include "event-reporter/ledger/digest.hpp"

namespace gitops::reporter {

// The digest of the parts of an Application whose change is reported. Left out are the fields that
// Argo CD rewrites at each refresh (status.reconciledAt, status.observedAt, the refresh and hydrate
// annotations, the times of conditions) and the API server's bookkeeping (resourceVersion,
// generation, generateName, managedFields, the last-applied-configuration annotation).
Digest change_digest(std::string_view application);

// The same for an object of another kind. Left out are apiVersion and kind, which items of lists may
// lack, the API server's bookkeeping (as above), status.observedGeneration and the times of
// conditions.
Digest object_digest(std::string_view object);

// The digest of the nodes of a resource-tree answer, whatever their order. The answer must be JSON.
Digest tree_digest(std::string_view tree);

}  // namespace gitops::reporter
