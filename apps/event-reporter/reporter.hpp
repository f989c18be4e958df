#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/backoff.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/core/work_queue.hpp"
#include "common/daemon/daemon.hpp"
#include "event-reporter/application_reporter.hpp"
#include "event-reporter/delivery.hpp"
#include "event-reporter/dirty_set.hpp"
#include "event-reporter/gather.hpp"
#include "event-reporter/ledger.hpp"
#include "event-reporter/shard_leases.hpp"
#include "k8s-client/informer.hpp"

namespace gitops::reporter {

// Reports every change of the applications of the shards that this process holds.
//
// The informer says that an application changed; its key becomes dirty (DirtySet) and waits in the
// queue, which holds keys only. A worker takes a key and has it reported (ApplicationReporter):
// what differs from what the ledger says is acknowledged. A failure puts the key back with a delay,
// whatever its reason: nothing is dropped. Two workers never hold the same application, so its
// reports leave in order.
//
// Changes that no watch tells of are found otherwise: what the ledger knows and the first complete
// list does not have is gone; resource trees are looked at in turns, since Argo CD 3 keeps the
// health of resources out of the Application.
//
// A process reports the deletion of every application that it ever reported, whoever holds its
// shard now, and of those that were deleted shortly before it took a shard over: a deletion has no
// successor that would repair its loss.
//
// Loop thread only. Runs as tasks of the group given to start(); what is passed in outlives it.
class Reporter {
 public:
  struct Options {
    std::string own_namespace;
    std::vector<std::string> application_namespaces;  // patterns; empty: only the own namespace
    std::uint32_t replicas = 1;                       // over which applications are shared out
    std::size_t queue_size = 1000;
    std::size_t workers = 16;
    DirtySet::Limits dirty = {};
    Backoff::Options key_backoff{.initial = std::chrono::milliseconds(500),
                                 .max = std::chrono::seconds(30)};
    // A sign of life when nothing was acknowledged for so long.
    std::chrono::milliseconds heartbeat = std::chrono::minutes(9);
    // In which each resource tree is looked at once.
    std::chrono::milliseconds sweep = std::chrono::minutes(5);
    // How long deletions in other shards are remembered.
    std::chrono::milliseconds foreign_deletions = std::chrono::minutes(10);
    ApplicationReporter::Options application = {};
    k8s::Reflector::Options reflector;
  };
  Reporter(const Executor& executor, k8s::Client& kubernetes, Gatherer& gatherer, Ledger& ledger,
           Delivery& delivery, Options options, Metrics& metrics);

  void start(TaskGroup& group);
  // No further application is taken up; reports that are under way go on.
  void stop() { queue_.stop(); }
  // Applications that are being reported right now.
  [[nodiscard]] std::size_t in_work() const { return queue_.in_work(); }

  // For ShardLeases.
  void claimed(std::uint32_t shard, Term term);
  void released(std::uint32_t shard);
  [[nodiscard]] bool busy(std::uint32_t shard) const;

  [[nodiscard]] std::vector<ReadyCheck> ready_checks();
  // For /statusz.
  [[nodiscard]] std::string status() const;
  // All applications that are seen, whoever reports them.
  [[nodiscard]] std::vector<k8s::ObjectKey> applications() const;

 private:
  struct Deletion {
    std::string key;
    std::string tombstone;
    Clock::time_point time;
  };

  void on_change(const k8s::Change& change);
  void on_deletion(const std::string& key, const k8s::Change& change);
  [[nodiscard]] bool watches(std::string_view ns) const;
  [[nodiscard]] bool is_ours(const k8s::Record& record) const;
  [[nodiscard]] std::uint32_t shard_of_key(std::string_view key) const;
  [[nodiscard]] bool owns(std::string_view key) const { return held_.contains(shard_of_key(key)); }
  [[nodiscard]] std::size_t owned() const;
  // The ledger says that exactly this was reported in full.
  [[nodiscard]] bool is_reported(const std::string& key, std::string_view uid,
                                 const Digest& change) const;

  Task<> take_claims();
  Task<bool> start_anew(std::uint32_t shard);
  void take_over(std::uint32_t shard);
  Task<> find_deleted();
  Task<> sweep();
  Task<> look_at(std::string key, std::string project);
  Task<> work();
  Task<Result<void>> report(const std::string& key, DirtyWork& work, unsigned failures);
  Task<Result<void>> report_predecessor(std::string key);
  Task<> tick();
  void send_sign_of_life();
  void give_memory_back();
  [[nodiscard]] Backoff& backoff_of(const std::string& key);
  void log_failure(std::string_view key, const Error& error, Clock::duration delay);

  k8s::Client& kubernetes_;
  Gatherer& gatherer_;
  Ledger& ledger_;
  Delivery& delivery_;
  Options options_;
  Log log_{"reporter"};
  RepeatFilter repeats_{std::chrono::seconds(5)};

  WorkQueue queue_;
  DirtySet dirty_;
  std::unordered_map<std::string, Digest> seen_;  // change_digest of each application's last text
  std::unordered_map<std::string, Backoff> backoffs_;
  std::set<std::uint32_t> held_;      // shards whose applications are reported
  std::deque<std::uint32_t> claims_;  // shards to be held as soon as they start anew
  gitops::Event claims_changed_;
  std::deque<Deletion> foreign_deletions_;
  ApplicationReporter application_reporter_;
  k8s::Informer informer_;

  std::size_t reported_ = 0;  // since memory was given back last
  Clock::time_point last_sign_of_life_;
  bool argocd_well_ = true;  // as of the last tick

  Gauge& queue_size_;
  Gauge& overdue_size_;
  Gauge& oldest_dirty_;
  Gauge& applications_;
  Counter& unchanged_;
  Counter& sweeps_;
  Histogram& report_seconds_;
};

}  // namespace gitops::reporter
