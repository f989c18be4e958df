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

namespace gitops::reporter {

// The queue of objects whose reports are due, and its workers. A worker takes a key when the control
// plane takes events, and has it reported. A failed key comes back with backoff, whatever the reason,
// so nothing is dropped. No two workers hold the same object, so its reports leave in order. Loop
// thread only; runs as tasks of the group given to start().
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
  // Reports `work` of the object and removes from it what was reported. `failures` counts the failed
  // attempts in a row. An Error means that the rest of `work` is still due.
  using Handler =
      std::function<Task<Result<void>>(const std::string& key, DirtyWork& work, unsigned failures)>;
  // `delivery` outlives it.
  ReportQueue(const Executor& executor, Delivery& delivery, Options options, Handler report,
              Metrics& metrics);

  void start(TaskGroup& group);
  // Starts no further report; reports in flight go on.
  void stop() { queue_.stop(); }

  // Whether a heartbeat is due. True restarts the interval.
  [[nodiscard]] bool heartbeat_due();
  [[nodiscard]] DirtySet& dirty() { return dirty_; }
  [[nodiscard]] const DirtySet& dirty() const { return dirty_; }
  // Lines for /statusz.
  [[nodiscard]] std::string status() const;

 private:
  Task<> work();
  Task<> tick();
  void give_memory_back();
  void log_failure(std::string_view key, const Error& error, Clock::duration delay);

  Delivery& delivery_;
  Options options_;
  Handler report_;
  Log log_{"reporter"};
  RepeatFilter repeats_{std::chrono::seconds(5)};
  WorkQueue queue_;
  DirtySet dirty_;
  std::unordered_map<std::string, Backoff> backoffs_;
  Clock::time_point last_heartbeat_ = Clock::now();
  std::size_t reported_ = 0;         // reports since memory was returned to the system
  std::size_t reported_before_ = 0;  // value of reported_ at the last tick

  Gauge& queue_size_;
  Gauge& overdue_size_;
  Gauge& oldest_dirty_;
  Histogram& report_seconds_;
};

}  // namespace gitops::reporter
