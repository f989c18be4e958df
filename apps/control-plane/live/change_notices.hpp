#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/core/worker_pool.hpp"
#include "common/store/connection.hpp"

namespace gitops::control_plane_server {

// Wakes the other processes on one PostgreSQL, and is woken by them, by NOTIFY on the channel gitops_change with the
// payload "INSTANCE NUMBER". It has two connections of its own, which go to the server directly: a pooler of
// transactions loses LISTEN. NOTIFY is never sent in a transaction that matters, since PostgreSQL holds a lock of the
// whole server from NOTIFY to the end of its commit. A notice that is lost costs the time until the next poll.
// Loop thread only; call stop() before the destruction.
class ChangeNotices {
 public:
  // `heard` is called on the loop for notices of others, and after the connection was made.
  ChangeNotices(const Executor& executor, Metrics& metrics, store::Location location,
                std::string instance, std::function<void()> heard);
  ~ChangeNotices();

  void start();
  Task<> stop();
  // Sends a notice within 50 ms; calls in between are sent as one.
  void announce(std::int64_t no);

 private:
  struct Line;  // a connection; it is shared with a thread of the pool
  Task<> listen();
  Task<> notify();

  std::string instance_;
  std::function<void()> heard_;
  std::shared_ptr<Line> listening_;
  std::shared_ptr<Line> notifying_;
  std::int64_t last_ = 0;
  bool is_due_ = false;
  gitops::Event due_;
  Log log_{"live"};
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Counter& sent_;
  Counter& heard_total_;
  Counter& lost_;
  WorkerPool pool_;
  TaskGroup tasks_;
};

}  // namespace gitops::control_plane_server
