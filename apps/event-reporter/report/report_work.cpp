#include "event-reporter/report/report_work.hpp"

#include <utility>

namespace gitops::reporter {

ChangeTracker::Options with_queue(ChangeTracker::Options options, ReportQueue& queue,
                                  const Delivery& delivery) {
  options.takes_events = [&delivery] {
    return delivery.breaker().state() == Breaker::State::closed;
  };
  options.cancel = [&queue](const std::function<bool(std::string_view key)>& which) {
    queue.cancel(which);
  };
  return options;
}

Error being_taken_over() {
  return {.code = ErrorCode::unavailable, .message = "the object's shard is being taken over"};
}

Error grant_ended() {
  return {.code = ErrorCode::unavailable, .message = "the object's shard changed hands"};
}

Task<Result<void>> report_work(const ChangeTracker& changes, const Grant& grant,
                               const std::string& key, DirtyWork& work, const ReportSteps& steps) {
  if (!work.tombstone.empty()) {
    const auto deleted = co_await steps.deletion(work.tombstone);
    if (!deleted) co_return std::unexpected(deleted.error());
    work.tombstone.clear();
  }
  for (const auto& uid : changes.predecessors(key)) {
    const auto deleted = co_await steps.predecessor(uid);
    if (!deleted) co_return std::unexpected(deleted.error());
  }
  while (work.live && grant.owner && changes.holds(grant)) {
    const bool read = work.states.empty();
    const auto reported = co_await steps.state();
    if (!reported) co_return std::unexpected(reported.error());
    if (!*reported) break;  // the watch will deliver its deletion
    work.heartbeat = false;
    if (!read) work.states.pop_front();
    if (work.states.empty()) break;
  }
  co_return Result<void>();
}

}  // namespace gitops::reporter
