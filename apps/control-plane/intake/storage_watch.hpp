#pragma once

#include <chrono>
#include <cstdint>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/status_report.hpp"
#include "common/store/database.hpp"
#include "control-plane/storage/retention.hpp"

namespace gitops::control_plane_server {

// Watches the size of the database against a limit: warns at 80 %, cuts the oldest history from 90 %, and tells the
// intake to refuse events from 97 %. Reads go on. Does nothing without a limit. Loop thread only; outlives its tasks.
class StorageWatch {
 public:
  struct Options {
    std::int64_t limit = 0;  // in bytes; 0: none
    Clock::duration period = std::chrono::seconds(10);
  };
  // `database` and `metrics` outlive this object.
  StorageWatch(store::Database& database, Metrics& metrics, Options options);

  // Checks once per period, until it is cancelled.
  Task<> run();
  // Measures the database, and cuts history when that is due. An error leaves the state unchanged.
  Task<> check();

  [[nodiscard]] StatusEntry status() const;
  [[nodiscard]] SizeState state() const { return bound_.state(); }
  [[nodiscard]] bool is_full() const { return bound_.state() == SizeState::full; }

 private:
  Task<bool> measure();
  Task<> cut_history();
  void report(SizeState before);

  store::Database& database_;
  Options options_;
  StorageBound bound_;
  Log log_{"storage"};
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Gauge& bytes_;
  Gauge& limit_;
  Gauge& state_;
  Counter& cut_rows_;
};

}  // namespace gitops::control_plane_server
