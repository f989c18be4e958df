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

// Records in the ledger which objects other replicas report, with their parts. After a take-over of
// their shard, or after a replica was removed together with its ledger, this replica finds their
// deletions by the difference to the cluster.
//
// The ledger has a row for each object and uid. New objects are written at once. Deleted objects and
// parts stay for the retention: by then their replica has reported the deletion, or another replica
// has taken the shard over and reported everything that is in the row and not in the cluster. Loop
// thread only.
class PeerInventory {
 public:
  // The retention does not run while `takes_events` says that the control plane takes no events: the
  // deletions cannot be reported then. Empty: it always does.
  using TakesEvents = std::function<bool()>;
  PeerInventory(const Executor& executor, Ledger& ledger, std::chrono::milliseconds retention,
                TakesEvents takes_events = {});

  void start(TaskGroup& group);

  // The object exists, another replica reports it, and these are its parts.
  void add(const std::string& key, std::string_view uid, const std::vector<ResourceId>& parts,
           Clock::time_point now);
  // The object was deleted.
  void remove(std::string_view key, Clock::time_point now);
  // The object with this uid was deleted.
  void remove(std::string_view key, std::string_view uid, Clock::time_point now);
  // The object has this uid now, so its predecessors were deleted.
  void remove_others(std::string_view key, std::string_view uid, Clock::time_point now);

  [[nodiscard]] bool contains(std::string_view key) const;
  // The uids of the deleted objects with that key.
  [[nodiscard]] std::vector<std::string> deleted_uids(std::string_view key) const;

  // Erases what was deleted before the retention. The task of start() calls it regularly, so that it
  // knows how long the control plane took no events.
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
  Clock::time_point expired_ = Clock::now();  // the last expire()
  using Parts = decltype(LedgerEntry::resources);
  std::map<std::string, Outdated> outdated_;  // rows with deleted objects or parts
  // Parts that rows lack, by row: those of every state since, since another replica may have reported
  // any of them.
  std::map<std::string, Parts> unmerged_;
  gitops::Event changed_;
};

}  // namespace gitops::reporter
