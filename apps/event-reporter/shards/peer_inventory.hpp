#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/task_group.hpp"
#include "common/core/time.hpp"
#include "event-reporter/ledger/ledger.hpp"
#include "event-reporter/ledger/resource_id.hpp"

namespace gitops::reporter {

// Records in the ledger the objects that other replicas report, with their parts. After a take-over
// of their shard, or after a replica was removed together with its ledger, this replica finds their
// deletions by the difference to the cluster.
//
// The ledger has a row for each object and uid. New objects are written at once. Deleted objects and
// parts stay for the retention: by then their replica has reported the deletion, or another replica
// has taken the shard over and reported the deletion of all objects and parts that are in the row
// and not in the cluster. Loop thread only.
class PeerInventory {
 public:
  // Returns whether the control plane takes events. The retention does not run while it does not:
  // the deletions cannot be reported then. Empty: it always does.
  using TakesEvents = std::function<bool()>;
  PeerInventory(const Executor& executor, Ledger& ledger, std::chrono::milliseconds retention,
                TakesEvents takes_events = {});

  void start(TaskGroup& group);

  // Records that the object exists with these parts, and that another replica reports it.
  void add(const std::string& key, std::string_view uid, const std::vector<ResourceId>& parts,
           Clock::time_point now);
  // Records that the object was deleted.
  void remove(std::string_view key, Clock::time_point now);
  // Records that the object with this uid was deleted.
  void remove(std::string_view key, std::string_view uid, Clock::time_point now);
  // Records that the object has this uid now, so its predecessors were deleted, and it was not.
  void remove_others(std::string_view key, std::string_view uid, Clock::time_point now);

  [[nodiscard]] bool contains(std::string_view key) const;
  // Returns the uids of the deleted objects with that key.
  [[nodiscard]] std::vector<std::string> deleted_uids(std::string_view key) const;

  // Waits until the rows have all that was recorded before the call. Call it before the ledger's last
  // flush().
  Task<> flush(Deadline deadline);
  // Erases objects and parts whose retention has ended. The task of start() calls it regularly, so
  // that it knows how long the control plane took no events.
  void expire(Clock::time_point now);

 private:
  struct Outdated {
    Clock::time_point since;
    std::optional<LedgerEntry> newest;  // absent: the object was deleted
  };
  Task<> refresh_inventory();
  Task<bool> merge(std::string row);
  [[nodiscard]] bool is_newest(const std::string& row, const LedgerEntry& entry) const;
  void outdate(const std::string& row, std::optional<LedgerEntry> newest, Clock::time_point now);

  Ledger& ledger_;
  std::chrono::milliseconds retention_;
  TakesEvents takes_events_;
  Clock::time_point expired_ = Clock::now();  // time of the last expire()
  using Parts = decltype(LedgerEntry::resources);
  std::map<std::string, Outdated> outdated_;  // rows with deleted objects or parts
  // Parts that rows lack, by row: those of every later state, since another replica may have reported
  // any of them.
  std::map<std::string, Parts> unmerged_;
  gitops::Event changed_;
};

}  // namespace gitops::reporter
