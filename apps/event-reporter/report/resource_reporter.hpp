#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/daemon/daemon.hpp"
#include "event-reporter/delivery/delivery.hpp"
#include "event-reporter/event/resource_event.hpp"
#include "event-reporter/ledger/ledger.hpp"
#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/full_reconcile.hpp"
#include "event-reporter/report/newest_states.hpp"
#include "event-reporter/report/report_queue.hpp"
#include "event-reporter/report/report_runner.hpp"
#include "event-reporter/report/report_work.hpp"
#include "event-reporter/report/resync.hpp"
#include "event-reporter/report/undelivered_check.hpp"
#include "event-reporter/report/watch_lag.hpp"
#include "event-reporter/watch/resource_kinds.hpp"
#include "k8s-client/kind_watch.hpp"

namespace gitops::reporter {

// Reports every change of the objects of some kinds (resource_kinds.hpp), on the runtime's own
// cluster and on managed clusters. An event holds the whole object.
//
// Objects that the ledger has and the first complete list of their kind lacks were deleted. No state
// is known of the objects of a kind that the cluster does not serve, and of a cluster that cannot be
// reached or is no longer watched.
//
// Loop thread only. Runs as tasks of the group given to start(); the arguments outlive it.
class ResourceReporter final : private TrackedObjects, private ObjectReporter {
 public:
  struct Options {
    std::string own_namespace;
    std::vector<const ResourceKind*> kinds;
    // Patterns of further namespaces, for kinds of ResourceKind::Home::runtime.
    std::vector<std::string> runtime_namespaces;
    bool only_own_namespace = false;  // applies to all kinds
    bool any_owner = false;  // report objects without the owner of ResourceKind::owner, too
    ChangeTracker::Options changes = {};
    ReportQueue::Options queue = {};
    // The period in which each object is reported again once (FullReconcile).
    std::chrono::milliseconds reconcile = std::chrono::hours(24);
    k8s::KindWatch::Options watch = {};
  };
  ResourceReporter(const Executor& executor, k8s::Client& kubernetes, Ledger& ledger,
                   Delivery& delivery, Options options, Metrics& metrics);

  void start(TaskGroup& group);
  // Starts no further report; reports in flight continue.
  void stop() { queue_.stop(); }

  // Returns the observer for ShardLeases: claimed(), released() and busy().
  [[nodiscard]] ChangeTracker& changes() { return changes_; }

  // A managed cluster for watch_cluster(), which may be called after start(). It restarts the watch of
  // a cluster that is watched already.
  struct ManagedCluster {
    std::string server;  // URL of its API server; identifies it
    std::string name;    // shown to people
    std::shared_ptr<k8s::Client> client;
    std::vector<std::string> namespaces;  // empty: all
  };
  void watch_cluster(ManagedCluster managed);
  // Stops the watch of a cluster; the ledger keeps its objects.
  void unwatch_cluster(const std::string& server);
  // Stops the watch and forgets the objects of a cluster that is no longer managed, without a report.
  void forget_cluster(const std::string& server);
  // Forgets every managed cluster that is not in `servers`.
  void forget_clusters_but(const std::set<std::string>& servers);

  // See Resync::Options::listed: the kinds of the own cluster, which are waited for, and those that are listed on
  // managed clusters, unless an object of theirs has no event and its cluster does not answer.
  [[nodiscard]] std::optional<Resync::Listed> listed() const;

  [[nodiscard]] std::vector<ReadyCheck> ready_checks();
  // Returns the entries of /statusz.
  [[nodiscard]] StatusReport status() const;

 private:
  struct Cluster;

  void watch(std::string id, const std::string& name, std::shared_ptr<k8s::Client> client,
             std::vector<k8s::WatchedKind> kinds);
  Task<> run(std::shared_ptr<Cluster> cluster);
  [[nodiscard]] std::vector<k8s::WatchedKind> kinds_of_own_cluster() const;
  [[nodiscard]] std::vector<k8s::WatchedKind> kinds_of(const ManagedCluster& managed) const;
  [[nodiscard]] std::string metric_label(const std::string& cluster, const std::string& ns);

  // Implementation of TrackedObjects.
  [[nodiscard]] std::string tombstone(const std::string& key,
                                      const std::string& uid) const override;
  [[nodiscard]] bool is_readable(const std::string& key) const override;
  void taken_over(std::uint32_t shard) override;

  void on_change(const Cluster& cluster, const ResourceKind& kind, const WatchLag& lag,
                 const k8s::Change& change);
  void start_epoch(const Cluster& cluster, const ResourceKind& kind);
  Task<> find_deleted(std::shared_ptr<Cluster> cluster, const k8s::KindWatch& watch);

  // Implementation of ObjectReporter.
  Task<Result<void>> report_gone(Grant grant, std::string key, std::string tombstone) override;
  Task<Result<void>> report_predecessor(Grant grant, std::string key, std::string uid) override;
  Task<Result<bool>> report_state(Grant grant, const std::string& key, const DirtyWork& work,
                                  const ReportAttempt& attempt) override;
  Task<Result<void>> report_missed(Grant grant, std::string key, const DirtyWork& work) override;

  Task<Result<void>> report_text(Grant grant, const ResourceKey& id, const std::string& text,
                                 bool was_read, bool heartbeat, SpanContext trace);
  Task<Result<LedgerEntry>> load(const std::string& key, const std::string& row);
  Task<Result<void>> post_gone(Grant grant, const ResourceKey& id, std::string row,
                               std::string text);
  Task<Result<std::string>> read(const ResourceKey& id);
  void note_unreadable(const std::string& key, const Error& error);
  [[nodiscard]] std::string_view watched_version(const std::string& key) const;
  Task<> tick();

  Executor executor_;
  k8s::Client& kubernetes_;
  Ledger& ledger_;
  Delivery& delivery_;
  Options options_;
  Metrics& metrics_;
  Log log_{"reporter"};
  RepeatFilter repeats_{std::chrono::minutes(1)};
  ReportQueue queue_;
  ChangeTracker changes_;
  ReportRunner runner_;
  FullReconcile reconcile_;
  TaskGroup* group_ = nullptr;                                // set by start()
  std::map<std::string, std::shared_ptr<Cluster>> clusters_;  // by ResourceKey::cluster
  std::set<std::string> metric_labels_;
  NewestStates newest_;  // states of the objects that were read instead of watched
  UndeliveredCheck undelivered_;

  Gauge& resources_;
  Gauge& clusters_size_;
  Gauge& failing_clusters_;
  Counter& unreadable_;
};

}  // namespace gitops::reporter
