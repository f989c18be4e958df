#include "event-reporter/report/deletion_check.hpp"

#include <algorithm>
#include <iterator>

namespace gitops::reporter {
namespace {

constexpr auto kReadTimeout = std::chrono::seconds(30);
// Longest pause between reads that are refused, and that between those of objects that are not
// watched: permissions that no longer cover a namespace stay so, and so do settings.
constexpr auto kRarePause = std::chrono::minutes(10);

}  // namespace

Task<> check_deletions(k8s::Client& kubernetes, Missing missing, DeletionCheck check,
                       OnDeleted deleted) {
  Backoff pauses(check.pauses, random_seed());
  Backoff refused_pauses({.initial = check.pauses.initial, .max = kRarePause}, random_seed());
  Missing refused;
  Missing unwatched;
  Clock::time_point refused_until{};
  Clock::time_point unwatched_until{};
  const auto take_due = [&missing](Missing& from, Clock::time_point until) {
    if (Clock::now() < until) return;
    std::ranges::move(from, std::back_inserter(missing));
    from.clear();
  };
  while (!missing.empty() || !refused.empty() || !unwatched.empty()) {
    take_due(refused, refused_until);
    take_due(unwatched, unwatched_until);
    const auto refused_before = refused.size();
    const auto unwatched_before = unwatched.size();
    Missing again;
    std::chrono::milliseconds asked_pause{0};
    for (auto& [key, uid] : missing) {
      if (check.is_watched && check.is_watched(key)) continue;
      const auto read =
          co_await kubernetes.get(check.resource, check.object(key), deadline_after(kReadTimeout));
      if (read) {
        if (check.is_watched) unwatched.emplace_back(std::move(key), std::move(uid));
        continue;
      }
      if (read.error().code == ErrorCode::not_found) {
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
    if (unwatched.size() > unwatched_before) unwatched_until = deadline_after(kRarePause);
    if (!missing.empty()) {
      co_await sleep_for(pauses.next(asked_pause));
    } else if (!refused.empty() || !unwatched.empty()) {
      co_await sleep_until(std::min(refused.empty() ? kNever : refused_until,
                                    unwatched.empty() ? kNever : unwatched_until));
    }
  }
}

}  // namespace gitops::reporter
