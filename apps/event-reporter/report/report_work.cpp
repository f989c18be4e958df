#include "event-reporter/report/report_work.hpp"

namespace gitops::reporter {
namespace {

Task<Result<void>> report_in_order(const ChangeTracker& changes, ObjectReporter& reporter,
                                   const Grant& grant, const std::string& key, DirtyWork& work,
                                   const ReportAttempt& attempt) {
  if (!work.tombstone.empty()) {
    const auto deleted = co_await reporter.report_gone(grant, key, work.tombstone);
    if (!deleted) co_return std::unexpected(deleted.error());
    work.tombstone.clear();
  }
  for (const auto& uid : changes.predecessors(key)) {
    const auto deleted = co_await reporter.report_predecessor(grant, key, uid);
    if (!deleted) co_return std::unexpected(deleted.error());
  }
  while (work.live && grant.owner && changes.holds(grant)) {
    const bool read = work.states.empty();
    const auto reported = co_await reporter.report_state(grant, key, work, attempt);
    if (!reported) co_return std::unexpected(reported.error());
    if (!*reported) break;  // the watch will deliver its deletion
    work.heartbeat = false;
    if (!read) work.states.pop_front();
    if (work.states.empty()) break;
  }
  co_return Result<void>();
}

}  // namespace

Error grant_ended() {
  return {.code = ErrorCode::unavailable, .message = "the object's shard changed hands"};
}

Task<Result<void>> report_work(ChangeTracker& changes, ObjectReporter& reporter,
                               const std::string& key, DirtyWork& work, ReportAttempt attempt) {
  const auto grant = changes.grant(key);
  if (!grant) co_return fail(ErrorCode::unavailable, "the object's shard is being taken over");
  auto reported = co_await report_in_order(changes, reporter, *grant, key, work, attempt);
  if (!reported) co_return reported;
  if (grant->retry_refused) changes.retried(*grant, key);
  auto missed = co_await reporter.report_missed(*grant, key, work);
  if (!missed) co_return missed;
  // States may be left, and their next report is another one: by the holder, or for the inventory.
  if (!changes.holds(*grant)) co_return std::unexpected(grant_ended());
  co_return Result<void>();
}

}  // namespace gitops::reporter
