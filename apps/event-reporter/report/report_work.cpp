#include "event-reporter/report/report_work.hpp"

namespace gitops::reporter {

Task<Result<void>> report_work(const ChangeTracker& changes, const std::string& key,
                               DirtyWork& work, const ReportSteps& steps) {
  if (!work.tombstone.empty()) {
    const auto deleted = co_await steps.deletion(work.tombstone);
    if (!deleted) co_return std::unexpected(deleted.error());
    work.tombstone.clear();
  }
  for (const auto& uid : changes.predecessors(key)) {
    const auto deleted = co_await steps.predecessor(uid);
    if (!deleted) co_return std::unexpected(deleted.error());
  }
  while (work.live && changes.owns(key)) {
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
