#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/core/async.hpp"
#include "common/core/backoff.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"
#include "common/core/trace.hpp"
#include "common/core/work_queue.hpp"
#include "event-reporter/delivery/delivery.hpp"
#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/dirty_set.hpp"
#include "event-reporter/report/report_scheduler.hpp"
#include "event-reporter/report/report_work.hpp"
#include "event-reporter/report/slow_reports.hpp"

namespace gitops::reporter {

// Time that the reads of one report may take before its object counts as slow (SlowReports).
inline constexpr auto kSlowAfter = std::chrono::milliseconds(500);

// The queue of objects whose reports are due, and its workers. A worker takes a key when the control
// plane takes events, and reports it (report_work). A failed key comes back with backoff after any
// failure, so nothing is dropped. No two workers hold the same object, so its reports leave in order.
//
// Objects whose reports fail or whose reads take long (SlowReports) hold at most half of the workers,
// and so delay the others by little. Loop thread only; runs as tasks of the group given to start().
class ReportQueue final : public ReportScheduler {
 public:
  struct Options {
    std::string object = "application";  // name of an object in the log
    std::size_t capacity = 1000;         // waiting keys
    std::size_t workers = 16;
    DirtySet::Limits dirty = {};
    // Time without an acknowledgement after which a heartbeat is due. At most nine minutes for a control
    // plane that asks with its acknowledgements.
    std::chrono::milliseconds heartbeat = std::chrono::minutes(9);
    Backoff::Options backoff{.initial = std::chrono::milliseconds(500),
                             .max = std::chrono::seconds(30)};
    Tracer* tracer = nullptr;  // of the spans of reports; outlives the queue
  };
  // `delivery` outlives it.
  ReportQueue(const Executor& executor, Delivery& delivery, Options options, Metrics& metrics);

  // `changes` and `reporter` outlive the group's tasks.
  void start(TaskGroup& group, ChangeTracker& changes, ObjectReporter& reporter);
  // Starts no further report; reports in flight continue.
  void stop() { queue_.stop(); }

  // Implementation of ReportScheduler, for the ChangeTracker that fills the queue.
  [[nodiscard]] DirtySet& dirty() override { return dirty_; }
  void cancel(const KeyFilter& which) override;
  [[nodiscard]] bool takes_events() const override {
    return delivery_.breaker().state() == Breaker::State::closed;
  }

  // Returns whether no object waits for a worker or is in work, apart from those in backoff, and
  // the control plane takes events.
  [[nodiscard]] bool is_idle() const;
  // Returns whether a heartbeat is due. True restarts the interval.
  [[nodiscard]] bool heartbeat_due();
  // Returns whether a report of the object waits or is in flight.
  [[nodiscard]] bool is_due(const std::string& key) const { return dirty_.contains(key); }
  // Ends the delays of failed objects, at a bounded rate: the peer that caused the failures responds
  // again.
  void bring_forward() { forward_ = queue_.delayed(); }
  // Returns the entries of /statusz.
  [[nodiscard]] StatusReport status() const;

 private:
  // A report in flight.
  struct Running {
    Timer never;  // its end cancels the report
    bool cancelled = false;
    Clock::duration reading{};  // time that its reads have taken so far
    bool slow = false;          // its reads took long
    bool gave_way = false;
  };
  Task<> work(ChangeTracker& changes, ObjectReporter& reporter);
  Task<Result<void>> report(ChangeTracker& changes, ObjectReporter& reporter,
                            const std::string& key, DirtyWork& work, Running& running);
  Task<Result<void>> run(Running& running, const std::string& key, Task<Result<void>> report);
  Task<> until_reads_must_end(const std::string& key, Running& running);
  Task<> tick();
  void log_failure(std::string_view key, const Error& error, Clock::duration delay);

  Delivery& delivery_;
  Options options_;
  Log log_{"reporter"};
  RepeatFilter repeats_{std::chrono::seconds(5)};
  SlowReports slow_;
  WorkQueue queue_;
  DirtySet dirty_;
  std::size_t forward_ = 0;  // delayed keys that are still to be brought forward
  std::unordered_map<std::string, Backoff> backoffs_;
  std::unordered_map<std::string, Running*> running_;
  Clock::time_point last_heartbeat_ = Clock::now();

  Gauge& queue_size_;
  Gauge& overdue_size_;
  Gauge& slow_size_;
  Gauge& oldest_dirty_;
  Histogram& report_seconds_;
};

}  // namespace gitops::reporter
