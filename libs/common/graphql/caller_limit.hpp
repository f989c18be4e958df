#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "common/core/error.hpp"

namespace gitops::graphql {

// Limit of the operations that each caller may run at a time. Permits may outlive it. Loop thread
// only.
class CallerLimit {
 public:
  explicit CallerLimit(std::size_t most) : most_(most) {}

  // Returns a permit for one operation of this caller, which its destruction returns. Error:
  // too_many_requests.
  Result<std::shared_ptr<void>> acquire(std::string caller);

 private:
  using Running = std::map<std::string, std::size_t>;  // operations by caller, none 0

  std::size_t most_;
  std::shared_ptr<Running> running_ = std::make_shared<Running>();
};

}  // namespace gitops::graphql
