#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/attempts.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/store/database.hpp"
#include "control-plane/audit/audit_entry.hpp"

namespace gitops::control_plane_server {

// Stores the entries of this process's requests. A request that changed something is answered after its entry is
// committed, or after the database has not taken it for a while; the entry is then in the program's log. Loop thread
// only; call stop() before the destruction.
class AuditLog {
 public:
  // `database` and `metrics` outlive it.
  AuditLog(const Executor& executor, store::Database& database, Metrics& metrics);
  ~AuditLog();

  void start();
  // Waits until every entry so far is stored, or for the deadline.
  Task<> idle(Deadline deadline);
  // Stores what waits, until the deadline.
  Task<> stop(Deadline deadline);

  // Stores an entry; returns when it is committed, or was written to the program's log instead.
  Task<> add(AuditEntry entry);
  // Stores the entry of a refusal, later. The same refusal of one caller and address is stored at most once a minute,
  // with the number of those in between. Different ones have a limit for each caller, or for each network without one:
  // paths and addresses are of a client's choice.
  void add_refusal(AuditEntry entry);

 private:
  struct Waiting;
  Task<> run();
  void push(std::shared_ptr<Waiting> entry);
  void write_to_log(const AuditEntry& entry, const char* why);

  store::Database& database_;
  Executor executor_;
  std::vector<std::shared_ptr<Waiting>> queue_;
  std::vector<std::shared_ptr<Waiting>> under_way_;  // the batch that is being written
  gitops::Event queued_;
  gitops::Event written_;
  RepeatFilter refusals_{std::chrono::minutes(1)};
  Attempts different_refusals_{{.burst = 100, .period = std::chrono::seconds(1)}};
  std::uint64_t left_out_ = 0;  // since the last entry of a refusal
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Log log_{"audit"};
  Counter& stored_;
  Counter& not_stored_;
  TaskGroup tasks_;
};

}  // namespace gitops::control_plane_server
