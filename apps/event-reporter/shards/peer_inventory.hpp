#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/task_group.hpp"
#include "common/core/time.hpp"
#include "event-reporter/ledger/ledger.hpp"
#include "event-reporter/ledger/resource_id.hpp"

namespace gitops::reporter {

// Writes down which objects there are that others report, and what parts they have, so that their
// end is known to whoever reports them next: when a shard is taken over, and when a replica is
// scaled away and its ledger with it.
//
// A row of the ledger for each object and uid. What appears is written at once. What is gone stays
// for a while: by then its reporter has told of it, or somebody has taken its place and tells of
// all that the row has and the cluster has not. Loop thread only.
class PeerInventory {
 public:
  PeerInventory(const Executor& executor, Ledger& ledger, std::chrono::milliseconds memory);

  void start(TaskGroup& group);

  // Somebody else reports this object, and it has these parts now.
  void add(const std::string& key, std::string_view uid, const std::vector<ResourceId>& parts,
           Clock::time_point now);
  // There is no such object.
  void remove(std::string_view key, Clock::time_point now);
  // The same of one uid.
  void remove(std::string_view key, std::string_view uid, Clock::time_point now);
  // The object of that name has this uid now: any other is gone.
  void remove_others(std::string_view key, std::string_view uid, Clock::time_point now);

  [[nodiscard]] bool contains(std::string_view key) const;
  // The uids of objects of that name that are gone.
  [[nodiscard]] std::vector<std::string> deleted_uids(std::string_view key) const;

  // Forgets what is gone for long enough; start() does so from time to time.
  void expire(Clock::time_point now);

 private:
  struct Outdated {
    Clock::time_point since;
    std::optional<LedgerEntry> newest;  // nothing: it is gone
  };
  Task<> keep_up();
  Task<bool> merge(std::string row);
  [[nodiscard]] bool is_newest(const std::string& row, const LedgerEntry& entry) const;
  void outdate(const std::string& row, std::optional<LedgerEntry> newest, Clock::time_point now);

  Ledger& ledger_;
  std::chrono::milliseconds memory_;
  std::map<std::string, Outdated> outdated_;  // rows that say more than there is
  std::set<std::string> unmerged_;            // of these, rows that lack something that there is
  gitops::Event changed_;
};

}  // namespace gitops::reporter
