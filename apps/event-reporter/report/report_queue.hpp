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

// The objects whose reports are due, and the workers that have them reported. A worker takes a key
// when the control plane takes events; a failure puts the key back with a delay, whatever its
// reason: nothing is dropped. Two workers never hold the same object, so its reports leave in
// order. Loop thread only; runs as tasks of the group given to start().
class ReportQueue {
 public:
  struct Options {
    std::string object = "application";  // as the log calls one
    std::size_t capacity = 1000;         // keys that wait
    std::size_t workers = 16;
    DirtySet::Limits dirty = {};
    // A sign of life is due when nothing was acknowledged for so long.
    std::chrono::milliseconds heartbeat = std::chrono::minutes(9);
    Backoff::Options backoff{.initial = std::chrono::milliseconds(500),
                             .max = std::chrono::seconds(30)};
  };
  // Reports what `work` holds about the object and takes out of it what was reported; `failures`:
  // in a row so far. An Error: the rest is still due.
  using Handler =
      std::function<Task<Result<void>>(const std::string& key, DirtyWork& work, unsigned failures)>;
  // `delivery` outlives it.
  ReportQueue(const Executor& executor, Delivery& delivery, Options options, Handler report,
              Metrics& metrics);

  void start(TaskGroup& group);
  // No further object is taken up; reports that are under way go on.
  void stop() { queue_.stop(); }

  // Whether a sign of life is due. Then the next one is not for as long.
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
  std::size_t reported_ = 0;         // since memory was given back last
  std::size_t reported_before_ = 0;  // of these, until the last tick

  Gauge& queue_size_;
  Gauge& overdue_size_;
  Gauge& oldest_dirty_;
  Histogram& report_seconds_;
};

}  // namespace gitops::reporter
