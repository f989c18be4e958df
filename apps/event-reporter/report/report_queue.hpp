#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/core/async.hpp"
#include "common/core/backoff.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/core/work_queue.hpp"
#include "event-reporter/delivery/delivery.hpp"
#include "event-reporter/report/dirty_set.hpp"
#include "event-reporter/report/slow_reports.hpp"

namespace gitops::reporter {

// How long the reads of one report may take until its object counts as slow (SlowReports).
inline constexpr auto kSlowAfter = std::chrono::milliseconds(500);

// The queue of objects whose reports are due, and its workers. A worker takes a key when the control
// plane takes events, and has it reported. A failed key comes back with backoff, whatever the reason,
// so nothing is dropped. No two workers hold the same object, so its reports leave in order.
//
// Objects whose reports fail or whose reads take long (SlowReports) hold at most half of the workers,
// and so delay the others by little. Loop thread only; runs as tasks of the group given to start().
class ReportQueue {
 public:
  struct Options {
    std::string object = "application";  // name of an object in the log
    std::size_t capacity = 1000;         // waiting keys
    std::size_t workers = 16;
    DirtySet::Limits dirty = {};
    // The time without an acknowledgement after which a heartbeat is due.
    std::chrono::milliseconds heartbeat = std::chrono::minutes(9);
    Backoff::Options backoff{.initial = std::chrono::milliseconds(500),
                             .max = std::chrono::seconds(30)};
  };
  // One attempt to report an object.
  struct Attempt {
    unsigned failures = 0;  // failed attempts in a row before it
    // A wait beside the reads of the attempt, which are to be cancelled when it returns: they take
    // long, and other slow objects hold the workers for those. The attempt then ends with any Error
    // and is repeated when a worker is free for it.
    std::function<Task<>()> until_reads_must_end;
  };
  // Reports `work` of the object and removes from it what was reported. An Error means that the rest
  // of `work` is still due.
  using Handler =
      std::function<Task<Result<void>>(const std::string& key, DirtyWork& work, Attempt attempt)>;
  // `delivery` outlives it.
  ReportQueue(const Executor& executor, Delivery& delivery, Options options, Handler report,
              Metrics& metrics);

  void start(TaskGroup& group);
  // Starts no further report; reports in flight go on.
  void stop() { queue_.stop(); }

  // Cancels the reports under way of the keys that `which` selects. Their work is due again at once.
  void cancel(const std::function<bool(std::string_view key)>& which);

  // No object waits for a worker or is in work, apart from those in backoff, and the control plane
  // takes events.
  [[nodiscard]] bool is_idle() const;
  // Whether a heartbeat is due. True restarts the interval.
  [[nodiscard]] bool heartbeat_due();
  // What is due, for the ChangeTracker that fills it.
  [[nodiscard]] DirtySet& dirty() { return dirty_; }
  // Whether a report of the object waits or is under way.
  [[nodiscard]] bool is_due(const std::string& key) const { return dirty_.contains(key); }
  // Ends the delays of failed objects, at a bounded rate: the peer that they failed for answers again.
  void bring_forward() { forward_ = queue_.delayed(); }
  // Lines for /statusz.
  [[nodiscard]] std::string status() const;

 private:
  // A report under way.
  struct Running {
    Timer never;  // its end cancels the report
    bool cancelled = false;
    Clock::duration reading{};  // time that its reads have taken so far
    bool slow = false;          // its reads took long
    bool gave_way = false;
  };
  Task<> work();
  Task<Result<void>> report(const std::string& key, DirtyWork& work, Running& running);
  Task<Result<void>> run(Running& running, const std::string& key, DirtyWork& work,
                         Attempt attempt);
  Task<> until_reads_must_end(const std::string& key, Running& running);
  Task<> tick();
  void log_failure(std::string_view key, const Error& error, Clock::duration delay);

  Delivery& delivery_;
  Options options_;
  Handler report_;
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
