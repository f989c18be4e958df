#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/backoff.hpp"
#include "k8s-client/client.hpp"

namespace gitops::reporter {

// Objects that a complete list lacks: keys and uids.
using Missing = std::vector<std::pair<std::string, std::string>>;

struct DeletionCheck {
  k8s::Resource resource;
  k8s::ObjectKey (*object)(std::string_view key) = nullptr;  // that the key stands for
  Backoff::Options pauses;                                   // between rounds of reads
};
// Called for each object that was deleted.
using OnDeleted = std::function<void(std::string key, std::string uid)>;

// Finds out which objects were really deleted. A list also lacks objects that could not be decoded
// and namespaces that are no longer watched, so this reads each object, until the API server answers
// for all. A read that fails is repeated after all others. An object whose read is refused counts as
// existing. `kubernetes` outlives the call.
Task<> check_deletions(k8s::Client& kubernetes, Missing missing, DeletionCheck check,
                       OnDeleted deleted);

}  // namespace gitops::reporter
