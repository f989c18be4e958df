#include "event-reporter/report/report_runner.hpp"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>

#include "common/core/race.hpp"
#include "event-reporter/report/report_work.hpp"

namespace gitops::reporter {
namespace {

// Number of posts of one report between two writes to the ledger.
constexpr std::size_t kStoreEvery = 100;

}  // namespace

ReportRunner::ReportRunner(const Executor& executor, Ledger& ledger, ChangeTracker& changes,
                           Delivery& delivery, std::size_t workers)
    : executor_(executor),
      ledger_(ledger),
      changes_(changes),
      delivery_(delivery),
      workers_(workers) {}

Task<ReportEnd> ReportRunner::perform(Target target, ReportPlan& plan, const EventSource& source) {
  if (const auto written = co_await write_ahead(target, plan); !written) {
    co_return ReportEnd{.stopped = true, .error = written.error()};
  }
  std::size_t first = 0;
  if (!plan.events.empty() && plan.events.front().is_own()) {
    if (!co_await post(target, plan, source, plan.events[first++])) co_return plan.finish();
    if (first < plan.events.size()) save(target, plan);
  }
  co_await post_parts(target, plan, source, first);
  auto end = plan.finish();
  if (!end.erases) save(target, plan);
  co_return end;
}

// Records in the ledger which events will be sent, with their sequences. A kill before their
// acknowledgement then neither loses them nor sends another content under the same id, a return to
// the previous state is due as well, and the deletion of a new part is found.
Task<Result<void>> ReportRunner::write_ahead(const Target& target, ReportPlan& plan) {
  if (!plan.is_written_ahead()) co_return Result<void>();
  if (plan.announces()) {
    plan.announce(changes_.next(target.grant, target.key, wall_now(), plan.entry));
  }
  if (!changes_.holds(target.grant)) co_return std::unexpected(grant_ended());
  auto written = co_await ledger_.write_ahead(target.row, plan.entry);
  if (written) plan.saved();
  co_return written;
}

// Saves the entry. It has no effect after the end of the grant: the entry may be that of a new
// term.
void ReportRunner::save(const Target& target, ReportPlan& plan) {
  if (!plan.is_unsaved() || !changes_.holds(target.grant)) return;
  ledger_.store(target.row, plan.entry);
  plan.saved();
}

// Posts an event; returns false when no further event may be posted.
Task<bool> ReportRunner::post(const Target& target, ReportPlan& plan, const EventSource& source,
                              const PlannedEvent& event) {
  auto made = source.make(event, plan.entry.uid, plan.sequence_of(event));
  made.trace = target.trace;
  made.refused_before = plan.was_refused(event);
  made.allowed = [this, grant = target.grant] { return changes_.holds(grant); };
  const auto outcome = co_await delivery_.deliver(std::move(made));
  co_return plan.record(event, outcome, wall_now());
}

// Posts the events of the parts. A failure does not stop the other events.
Task<> ReportRunner::post_parts(const Target& target, ReportPlan& plan, const EventSource& source,
                                std::size_t first) {
  const auto count = plan.events.size() - first;
  auto next = first;
  std::size_t tried = 0;
  // Posts the next event until none is left.
  const auto post_some = [&]() -> Task<> {
    while (next < plan.events.size()) {
      co_await post(target, plan, source, plan.events[next++]);
      if (++tried % kStoreEvery == 0) save(target, plan);
    }
  };
  const auto workers = std::min(count, workers_);
  const auto poster = [&] {
    return asio::co_spawn(executor_, spawnable(post_some()), asio::deferred);
  };
  std::vector<decltype(poster())> posters;
  if (workers == 1) {
    co_await post_some();
  } else if (workers > 1) {
    for (std::size_t i = 0; i < workers; ++i) posters.push_back(poster());
    auto group = asio::experimental::make_parallel_group(std::move(posters));
    auto [order, failures] =
        co_await group.async_wait(asio::experimental::wait_for_all(), use_task);
    for (const auto& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }
}

}  // namespace gitops::reporter
