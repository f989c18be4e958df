#pragma once

#include <string_view>

#include "event-reporter/ledger/digest.hpp"

namespace gitops::reporter {

// The digest of everything in an Application that counts as a change. Left out: what Argo CD
// rewrites at each refresh (status.reconciledAt, status.observedAt, the refresh and hydrate
// annotations, the times of conditions) and bookkeeping of the API server (resourceVersion,
// generation, generateName, managedFields, the last-applied-configuration annotation).
Digest change_digest(std::string_view application);

// The digest of everything in an object of another kind that counts as a change. Left out: its
// apiVersion and kind, which items of lists may lack, what the API server keeps for itself (as
// above), status.observedGeneration and the times of conditions.
Digest object_digest(std::string_view object);

// The digest of what a resource-tree answer says about its nodes, in whatever order it lists them.
// The answer is JSON.
Digest tree_digest(std::string_view tree);

}  // namespace gitops::reporter
