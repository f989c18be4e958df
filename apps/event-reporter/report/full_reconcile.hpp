#pragma once

#include <chrono>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/report_queue.hpp"

namespace gitops::reporter {

// Reports every object of the held shards again once per interval, without regard to the ledger. So
// changes that no digest covers heal by themselves.
//
// An object's time in the interval follows from its key, so the reports are spread out, and restarts
// neither repeat nor skip them; only the first 24th of the interval after a start is left out, for the
// reports that a start causes. One object at a time is reported again, and only while no other object
// waits for a worker and the control plane takes events. Delayed reports follow afterwards.
//
// Loop thread only; the arguments outlive it.
class FullReconcile {
 public:
  FullReconcile(ChangeTracker& changes, const ReportQueue& queue,
                std::chrono::milliseconds interval, Metrics& metrics);

  // Runs until it is cancelled.
  Task<> run();

 private:
  Task<> report_window(Clock::time_point begin, Clock::duration length);
  Task<> until_idle();

  ChangeTracker& changes_;
  const ReportQueue& queue_;
  std::chrono::milliseconds interval_;
  std::chrono::milliseconds phase_{};  // position in the interval at Clock's epoch
  Counter& reported_;
};

// Returns the object's position in an interval of at most 2^32 ms.
[[nodiscard]] std::chrono::milliseconds reconcile_place(std::string_view key,
                                                        std::chrono::milliseconds interval);

}  // namespace gitops::reporter
