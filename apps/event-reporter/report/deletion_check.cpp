#include "event-reporter/report/deletion_check.hpp"

#include <algorithm>
#include <iterator>

namespace gitops::reporter {
namespace {

constexpr auto kReadTimeout = std::chrono::seconds(30);
// Longest pause between reads that are refused, and of objects that exist: permissions that no
// longer cover a namespace stay so, and so do settings that leave it out.
constexpr auto kRarePause = std::chrono::minutes(10);

}  // namespace

Task<> check_deletions(k8s::Client& kubernetes, Missing missing, DeletionCheck check,
                       OnDeleted deleted) {
  Backoff pauses(check.pauses, random_seed());
  Backoff rare_pauses({.initial = check.pauses.initial, .max = kRarePause}, random_seed());
  Missing rare;
  Clock::time_point rare_until{};
  while (!missing.empty() || !rare.empty()) {
    if (Clock::now() >= rare_until) {
      std::ranges::move(rare, std::back_inserter(missing));
      rare.clear();
    }
    const auto rare_before = rare.size();
    Missing again;
    std::chrono::milliseconds asked_pause{0};
    for (auto& [key, uid] : missing) {
      if (check.is_watched && check.is_watched(key)) continue;
      const auto read =
          co_await kubernetes.get(check.resource, check.object(key), deadline_after(kReadTimeout));
      if (read && !check.is_watched) continue;
      if (!read && k8s::says_not_found(read.error())) {
        deleted(std::move(key), std::move(uid));
        continue;
      }
      if (!read) asked_pause = std::max(asked_pause, read.error().retry_after);
      const bool is_rare = read || read.error().code == ErrorCode::forbidden;
      auto& later = is_rare ? rare : again;
      later.emplace_back(std::move(key), std::move(uid));
    }
    missing = std::move(again);
    if (rare.size() > rare_before) rare_until = deadline_after(rare_pauses.next(asked_pause));
    if (!missing.empty()) {
      co_await sleep_for(pauses.next(asked_pause));
    } else if (!rare.empty()) {
      co_await sleep_until(rare_until);
    }
  }
}

}  // namespace gitops::reporter
