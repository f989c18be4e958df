#include "event-reporter/report/deletion_check.hpp"

#include <algorithm>

namespace gitops::reporter {
namespace {

constexpr auto kReadTimeout = std::chrono::seconds(30);

}  // namespace

Task<> check_deletions(k8s::Client& kubernetes, Missing missing, DeletionCheck check,
                       OnDeleted deleted) {
  Backoff pauses(check.pauses, random_seed());
  while (!missing.empty()) {
    Missing again;
    std::chrono::milliseconds asked_pause{0};
    for (auto& [key, uid] : missing) {
      const auto read =
          co_await kubernetes.get(check.resource, check.object(key), deadline_after(kReadTimeout));
      if (read) continue;
      if (k8s::says_not_found(read.error())) {
        deleted(std::move(key), std::move(uid));
        continue;
      }
      asked_pause = std::max(asked_pause, read.error().retry_after);
      again.emplace_back(std::move(key), std::move(uid));
    }
    missing = std::move(again);
    if (!missing.empty()) co_await sleep_for(pauses.next(asked_pause));
  }
}

}  // namespace gitops::reporter
