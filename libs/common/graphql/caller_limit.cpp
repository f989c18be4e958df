#include "common/graphql/caller_limit.hpp"

#include <chrono>
#include <utility>

namespace gitops::graphql {

Result<std::shared_ptr<void>> CallerLimit::acquire(std::string caller) {
  const auto entry = running_->try_emplace(std::move(caller), 0).first;
  if (entry->second >= most_) {
    return std::unexpected(Error{.code = ErrorCode::too_many_requests,
                                 .message = "too many operations of this caller at the same time",
                                 .retry_after = std::chrono::seconds(1),
                                 .http_status = 429});
  }
  ++entry->second;
  return std::shared_ptr<void>(running_.get(), [running = running_, entry](void*) {
    if (--entry->second == 0) running->erase(entry);
  });
}

}  // namespace gitops::graphql
