#include "event-reporter/report/deletion_check.hpp"

#include <algorithm>
#include <iterator>

namespace gitops::reporter {
namespace {

constexpr auto kReadTimeout = std::chrono::seconds(30);
// Longest pause between reads that are refused: permissions that no longer cover a namespace stay so.
constexpr auto kRefusedPause = std::chrono::minutes(10);

}  // namespace

Task<> check_deletions(k8s::Client& kubernetes, Missing missing, DeletionCheck check,
                       OnDeleted deleted) {
  Backoff pauses(check.pauses, random_seed());
  Backoff refused_pauses({.initial = check.pauses.initial, .max = kRefusedPause}, random_seed());
  Missing refused;
  Clock::time_point refused_until{};
  while (!missing.empty() || !refused.empty()) {
    if (Clock::now() >= refused_until) {
      std::ranges::move(refused, std::back_inserter(missing));
      refused.clear();
    }
    const auto refused_before = refused.size();
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
      auto& later = read.error().code == ErrorCode::forbidden ? refused : again;
      later.emplace_back(std::move(key), std::move(uid));
    }
    missing = std::move(again);
    if (refused.size() > refused_before) {
      refused_until = deadline_after(refused_pauses.next(asked_pause));
    }
    if (!missing.empty()) {
      co_await sleep_for(pauses.next(asked_pause));
    } else if (!refused.empty()) {
      co_await sleep_until(refused_until);
    }
  }
}

}  // namespace gitops::reporter
