#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/backoff.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "event-reporter/event/digest.hpp"
#include "event-reporter/ledger/ledger.hpp"
#include "event-reporter/report/dirty_set.hpp"
#include "event-reporter/shards/peer_inventory.hpp"
#include "event-reporter/shards/shard_leases.hpp"
#include "k8s-client/client.hpp"

namespace gitops::reporter {

// Decides which changes are due: those of objects in the shards that this process holds, when they
// are not what the ledger says was reported.
//
// A deletion has no successor that would repair its loss. So a process reports the deletion of
// every object that it ever reported, whoever holds its shard now; of those that others report it
// is a PeerInventory, and what is missing when it takes a shard over it reports as well.
//
// An object's shard follows from its name, which is what its key has behind the last '/'. A digest
// covers the object's uid. Loop thread only; runs as a task of the group given to start(); what is
// passed in outlives it.
class ChangeTracker {
 public:
  struct Options {
    std::uint32_t replicas = 1;  // over which objects are shared out
    // How long what is gone in other shards is remembered.
    std::chrono::milliseconds inventory_retention = std::chrono::minutes(10);
    // Parts of an object that are reported too, from its text; empty: objects have none. Where they
    // have some, changes of an object that this process once reported are due whoever holds its
    // shard now: parts may be gone that only we told of.
    std::function<std::vector<ResourceId>(std::string_view text)> parts = {};
  };
  ChangeTracker(const Executor& executor, Ledger& ledger, DirtySet& dirty, Options options,
                Metrics& metrics);

  void start(TaskGroup& group);

  // The object is there, and this is its text. Every object is to be told of, whose shard it may
  // be.
  void changed(const std::string& key, std::string_view uid, const Digest& digest,
               std::string_view text, Milestone milestone);
  // It is gone; `tombstone` is its last text, or as much of it as is known.
  void deleted(const std::string& key, std::string tombstone);
  // What the ledger has and a complete list has not, as `is_gone` says: keys with their uids, to be
  // passed to missed() if they are gone indeed.
  using Missing = std::vector<std::pair<std::string, std::string>>;
  [[nodiscard]] Missing missing(const std::function<bool(std::string_view key)>& is_gone) const;
  // It was deleted while nobody watched; `tombstone` says as much as is known.
  void missed(const std::string& key, std::string_view uid, std::string tombstone);
  // One object of the shards held is due although nothing changed; none when there is none.
  void send_heartbeat();
  // Nothing is known about these objects any more. What was reported of them is forgotten, too, and
  // what waits is not reported. How many the ledger knew.
  std::size_t forget(const std::function<bool(std::string_view key)>& which);

  // For ShardLeases.
  void claimed(std::uint32_t shard, Term term);
  void released(std::uint32_t shard);
  [[nodiscard]] bool busy(std::uint32_t shard) const;

  [[nodiscard]] bool owns(std::string_view key) const { return held_.contains(shard_of_key(key)); }
  // Whether an object of that key is there, as far as we know.
  [[nodiscard]] bool sees(const std::string& key) const { return seen_.contains(key); }
  // Whether this process or another may have reported an object of that key.
  [[nodiscard]] bool knows(const std::string& key) const {
    return ledger_.known().contains(key) || peers_.contains(key);
  }
  // Objects that others reported, or may have, and that are gone: their uids. The shard is ours.
  [[nodiscard]] std::vector<std::string> predecessors(const std::string& key) const;
  // Objects that are there in the shards held.
  [[nodiscard]] std::size_t owned() const;

 private:
  struct Claim {
    std::uint32_t shard = 0;
    Term term = 0;
    bool operator==(const Claim&) const = default;
  };

  [[nodiscard]] std::uint32_t shard_of_key(std::string_view key) const;
  [[nodiscard]] bool may_lose_parts(std::string_view key) const;
  [[nodiscard]] bool is_reported(const std::string& key, const Digest& digest) const;
  Task<> take_claims();
  Task<bool> start_anew(std::uint32_t shard);
  void take_over(Claim claim);

  Ledger& ledger_;
  DirtySet& dirty_;
  Options options_;
  std::unordered_map<std::string, Digest> seen_;            // of each object's last text
  std::unordered_map<std::uint32_t, std::size_t> seen_in_;  // how many of them are in each shard
  std::set<std::uint32_t> held_;                            // shards whose objects are reported
  std::deque<Claim> claims_;  // shards to be held as soon as they start anew
  gitops::Event claims_changed_;
  PeerInventory peers_;
  Counter& unchanged_;
};

// Whether an object that a complete list does not have is gone. Not in a list are also objects that
// could not be read, and places that are not ours to watch any more; so the API server is asked,
// until it answers. False as well when it refuses to say.
Task<bool> is_gone(k8s::Client& kubernetes, k8s::Resource resource, k8s::ObjectKey key,
                   Backoff::Options backoff);

}  // namespace gitops::reporter
