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

// Keys and uids of objects that a complete list lacks.
using Missing = std::vector<std::pair<std::string, std::string>>;

struct DeletionCheck {
  k8s::Resource resource;
  k8s::ObjectKey (*object)(std::string_view key) = nullptr;  // returns the object of the key
  Backoff::Options pauses;                                   // pauses between rounds of reads
  // Returns whether the watch has an object with this key, and so tells of its end. Empty: it has
  // each one that exists.
  std::function<bool(const std::string& key)> is_watched = {};
};
// Called for each object that was deleted.
using OnDeleted = std::function<void(std::string key, std::string uid)>;

// Finds out which objects were really deleted. A list also lacks objects that could not be decoded
// and namespaces that are no longer watched, so this reads each object, until the API server has
// responded for all. A read that fails is repeated after all others; one that the API server
// refuses is repeated after growing pauses, up to ten minutes. An object that exists and is not
// watched is read again every ten minutes. `kubernetes` outlives the call.
Task<> check_deletions(k8s::Client& kubernetes, Missing missing, DeletionCheck check,
                       OnDeleted deleted);

}  // namespace gitops::reporter
