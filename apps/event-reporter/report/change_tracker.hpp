#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/backoff.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "event-reporter/event/digest.hpp"
#include "event-reporter/ledger/ledger.hpp"
#include "event-reporter/ledger/sequence.hpp"
#include "event-reporter/report/deletion_check.hpp"
#include "event-reporter/report/dirty_set.hpp"
#include "event-reporter/report/report_scheduler.hpp"
#include "event-reporter/shards/peer_inventory.hpp"
#include "event-reporter/shards/shard_leases.hpp"
#include "k8s-client/client.hpp"

namespace gitops::reporter {

// The permission to report an object. It ends with the next claim or release of the object's shard.
struct Grant {
  std::uint32_t shard = 0;
  std::uint64_t period = 0;  // number of claims and releases of the shard so far
  // This replica holds the shard, and reports states. Otherwise it only reports deletions of objects
  // that it reported itself, with the sequence after its own last one, so that every later event of
  // the owner wins.
  bool owner = false;
  Sequence floor = 0;          // lower limit of an owner's sequences
  bool retry_refused = false;  // events that were refused for good are retried once
};

// The properties of the objects that a ChangeTracker decides about.
class TrackedObjects {
 public:
  virtual ~TrackedObjects() = default;
  // Returns the tombstone of an object of which only key and uid are known.
  [[nodiscard]] virtual std::string tombstone(const std::string& key,
                                              const std::string& uid) const = 0;
  // Returns whether objects have parts with events of their own. Objects that this process once
  // reported then stay due in shards of other replicas, because only this process knows some parts
  // that may be deleted.
  [[nodiscard]] virtual bool have_parts() const { return false; }
  // Returns the parts of an object, from its text.
  [[nodiscard]] virtual std::vector<ResourceId> parts(std::string_view /*text*/) const {
    return {};
  }
  // Returns whether a read of the object can succeed now, as far as is known.
  [[nodiscard]] virtual bool is_readable(const std::string& /*key*/) const { return true; }
  // Called when the shard is held from now on and another replica held it before
  // (WatchLag::taken_over).
  virtual void taken_over(std::uint32_t /*shard*/) {}
};

// Decides which changes are due: those of objects in the shards that this process holds, unless
// they are reported according to the ledger.
//
// No later event repairs a lost deletion. So a process reports the deletion of every object that it
// ever reported, even if another replica holds the shard now. It keeps an inventory of the objects
// of other replicas, too, and reports those that are missing when it takes their shard over.
//
// An object's shard follows from its name, the part of its key after the last '/'. The digest of an
// object covers its uid. Loop thread only; runs as a task of the group given to start(); the
// arguments outlive it.
class ChangeTracker final : public ShardObserver {
 public:
  struct Options {
    std::uint32_t replicas = 1;  // number of replicas that share the objects
    // Time for which deleted objects of other shards are remembered. It does not run while the
    // control plane takes no events.
    std::chrono::milliseconds inventory_retention = std::chrono::minutes(10);
  };
  ChangeTracker(const Executor& executor, Ledger& ledger, ReportScheduler& reports,
                TrackedObjects& objects, Options options, Metrics& metrics);

  void start(TaskGroup& group);
  // Waits until the ledger has the states of other shards that were seen before the call.
  Task<> flush_inventory(Deadline deadline) { return peers_.flush(deadline); }

  // The reported state: the one that a watch delivers, or the one that the object has when it is
  // read for its report.
  enum class Report { as_delivered, as_read };
  // Takes an object, with its text. Call it for objects of all shards.
  void changed(const std::string& key, std::string_view uid, const Digest& digest,
               std::string_view text, Milestone milestone, Report report = Report::as_delivered);
  // Takes the deletion of an object; `tombstone` is its last known JSON.
  void deleted(const std::string& key, std::string tombstone);
  // Returns the objects of the ledger that a complete list lacks, according to `is_gone`. Pass
  // those that were really deleted (check_deletions()) to missed().
  [[nodiscard]] Missing missing(const KeyFilter& is_gone) const;
  // Takes a deletion that had no watch event; `tombstone` holds the known data of the object.
  void missed(const std::string& key, std::string_view uid, std::string tombstone);
  // Compares the objects of the held shards that `which` selects with the ledger again, although they
  // did not change.
  void report_all(const KeyFilter& which);
  // The keys of the objects of the held shards that `which` selects.
  [[nodiscard]] std::vector<std::string> owned_keys(const KeyFilter& which) const;
  // Makes all events of the object due, as if none had been acknowledged. Returns false while it is
  // being reported, when it is not an object of the held shards, and when it cannot be read now.
  enum class Refusals { kept, forgotten };  // of events that were refused for good
  Task<bool> report_again(std::string key, Refusals refusals = Refusals::kept);
  // Returns the key of an object of the held shards that exists and was reported with this uid; empty: there is none.
  [[nodiscard]] std::string reported_key(std::string_view uid) const;
  // Makes all events of the held shards due, as if none had been acknowledged: the control plane lost some. Deletions
  // that were acknowledged are not among them. Returns when the ledger has it; nothing is reported meanwhile. Those of
  // other shards become due with the next claim.
  Task<> report_all_again();
  // Returns the shards that are held.
  [[nodiscard]] std::vector<std::uint32_t> held_shards() const;
  // Returns a sequence that is not above those of later events of the held shards.
  [[nodiscard]] Sequence present_sequence() const;
  // Returns the number of objects in the held shards no event of which was announced yet, without
  // those that cannot be read.
  [[nodiscard]] std::size_t unannounced() const;
  // Returns the keys of those of them that cannot be read now (TrackedObjects::is_readable).
  [[nodiscard]] std::vector<std::string> unannounced_away() const;
  // Records that the object's present state cannot be read, so it has no event before its next change.
  void unreadable(const std::string& key);
  // Compares the object with the ledger again when its shard is held, although it did not change.
  void compare_again(const std::string& key);
  // Makes any object of the held shards due that has an event and can be read, although it did not
  // change, if there is one; preferably one that is not due.
  void send_heartbeat();
  // Makes the objects with events that were refused for good due, and retries these events once.
  // Returns the number of such events.
  std::size_t retry_refused();
  // Reports that the report of the object with Grant::retry_refused has ended. One without the shard does not retry the
  // events of an object that exists; they are retried when the shard is held.
  void retried(const Grant& grant, const std::string& key);
  // Forgets the objects that `which` selects, also in the ledger, without reporting anything. Returns
  // the number of them in the ledger.
  std::size_t forget(const KeyFilter& which);

  // Sets a limit for the sequences of a shard's events (ShardLeases::latest). Absent: the wall clock's
  // time.
  using Latest = std::function<std::optional<WallTime>(std::uint32_t shard)>;
  void limit_sequences(Latest latest) { latest_ = std::move(latest); }
  // Implementation of ShardObserver. Both functions end every grant of the shard and cancel its
  // reports.
  void claimed(std::uint32_t shard, Term term, Sequence floor = 0) override;
  void released(std::uint32_t shard) override;
  [[nodiscard]] bool busy(std::uint32_t shard) const override;
  // Number of claimed shards that are not held yet.
  [[nodiscard]] std::size_t awaiting_take_over() const noexcept { return claims_.size(); }

  [[nodiscard]] std::uint32_t shard_of_key(std::string_view key) const;
  [[nodiscard]] bool owns(std::string_view key) const { return holds(shard_of_key(key)); }
  // Returns the permission to report the object now; absent while its shard is being taken over.
  [[nodiscard]] std::optional<Grant> grant(std::string_view key) const;
  // Returns whether the grant has not ended. Check it before every post and every write to the
  // ledger.
  [[nodiscard]] bool holds(const Grant& grant) const;
  // Records that the object has this state, which the holder of its shard reports and may take with it
  // when it is removed with its ledger.
  void seen_without_shard(const std::string& key, std::string_view uid, std::string_view text);
  // Records that the deletion of the object was reported without its shard, so another replica's events
  // may have higher sequences. The deletion is reported once more when the shard is held within the
  // retention; `parts` are those that the object may have had.
  void reported_without_shard(const std::string& key, std::string_view uid,
                              const std::vector<ResourceId>& parts);
  // Records the deletion of parts that was reported without the shard; `present` are the parts that
  // the object has now.
  void reported_without_shard(const std::string& key, std::string_view uid,
                              const std::vector<ResourceId>& gone,
                              const std::vector<ResourceId>& present);
  // Returns the sequence of the next events of the object with this key and this entry.
  [[nodiscard]] Sequence next(const Grant& grant, std::string_view key, WallTime now,
                              const LedgerEntry& entry) const;
  // Returns whether the object exists, as far as is known.
  [[nodiscard]] bool sees(const std::string& key) const { return seen_.contains(key); }
  // Returns the digest of the object's last state; absent when there is no object, as far as is known.
  [[nodiscard]] std::optional<Digest> seen_state(const std::string& key) const;
  // Returns whether this process or another replica may have reported an object with that key.
  [[nodiscard]] bool knows(const std::string& key) const {
    return ledger_.known().contains(key) || peers_.contains(key);
  }
  // Returns whether they may have reported the object with this uid.
  [[nodiscard]] bool knows(const std::string& key, std::string_view uid) const;
  // Returns the uids of deleted objects with that key that other replicas may have reported. Empty
  // while the shard is not held.
  [[nodiscard]] std::vector<std::string> predecessors(const std::string& key) const;
  // Returns the number of objects in the held shards.
  [[nodiscard]] std::size_t owned() const;

 private:
  struct Claim {
    std::uint32_t shard = 0;
    Term term = 0;
    bool operator==(const Claim&) const = default;
  };

  struct ShardState {
    std::uint64_t period = 0;
    bool claimed = false;  // until released
    bool held = false;     // claimed, and its objects may be reported
    Sequence floor = 0;
  };

  [[nodiscard]] bool holds(std::uint32_t shard) const;
  void end_grants(std::uint32_t shard);
  [[nodiscard]] bool may_lose_parts(std::string_view key) const;
  [[nodiscard]] bool is_reported(const std::string& key, const Digest& digest) const;
  [[nodiscard]] bool is_unannounced(const std::string& key) const;
  Task<> take_claims();
  Task<bool> start_over(std::uint32_t shard);
  void take_over(Claim claim);
  void hold(std::uint32_t shard);
  void forget_terms();
  Task<> report_shard_again(std::uint32_t shard);

  Ledger& ledger_;
  ReportScheduler& reports_;
  TrackedObjects& objects_;
  DirtySet& dirty_;
  Options options_;
  std::unordered_map<std::string, Digest> seen_;            // digest of each object's last text
  std::unordered_map<std::uint32_t, std::size_t> seen_in_;  // number of objects by shard
  std::unordered_map<std::uint32_t, ShardState> shards_;    // those that were ever claimed
  std::unordered_set<std::string> retries_;                 // keys, see Grant::retry_refused
  std::unordered_set<std::string> to_retry_;                // keys of retries_ when it is held
  std::unordered_set<std::string> to_compare_;              // keys, see compare_again()
  std::unordered_set<std::string> unreadable_;              // keys of objects in seen_
  std::deque<Claim> claims_;                                // shards to be held after start_over()
  gitops::Event claims_changed_;
  PeerInventory peers_;
  Latest latest_;
  Counter& unchanged_;
};

}  // namespace gitops::reporter
