#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/status_report.hpp"
#include "common/store/database.hpp"
#include "control-plane/storage/retention.hpp"

namespace gitops::control_plane_server {

// Watches the size of the database against a limit: warns at 80 %, cuts the oldest history from 90 %, and tells the
// intake to refuse events from 97 %. The intake also refuses them while the volume of SQLite's file has little room, since
// the log of SQLite needs some to be written back, and a full volume stops reads, too. Loop thread only; outlives its
// tasks.
class StorageWatch {
 public:
  struct Options {
    std::int64_t limit = 0;  // in bytes; 0: none
    std::string file = {};   // SQLite's; empty: no volume is watched
    Clock::duration period = std::chrono::seconds(10);
  };
  // `database` and `metrics` outlive this object.
  StorageWatch(store::Database& database, Metrics& metrics, Options options);

  // Checks the size once per period and the volume every second, until it is cancelled.
  Task<> run();
  // Measures volume and database, and cuts history when that is due. An error leaves the state unchanged.
  Task<> check();

  [[nodiscard]] StatusEntry status() const;
  [[nodiscard]] SizeState state() const { return bound_.state(); }
  [[nodiscard]] bool is_full() const {
    return bound_.state() == SizeState::full || is_volume_full_;
  }

 private:
  void check_volume();
  Task<> check_size();
  Task<bool> measure();
  Task<> keep(std::int64_t bytes);
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
  Gauge* volume_free_ = nullptr;  // null: no volume is watched
  bool is_volume_full_ = false;
};

}  // namespace gitops::control_plane_server
