#pragma once

#include <cstddef>
#include <cstdint>
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
#include "event-reporter/argo/gather.hpp"
#include "event-reporter/delivery/delivery.hpp"
#include "event-reporter/event/read_plan.hpp"
#include "event-reporter/ledger/ledger.hpp"
#include "event-reporter/report/application_reporter.hpp"
#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/children.hpp"
#include "event-reporter/report/full_reconcile.hpp"
#include "event-reporter/report/report_queue.hpp"
#include "event-reporter/report/resync.hpp"
#include "event-reporter/report/tracked_applications.hpp"
#include "event-reporter/report/undelivered_check.hpp"
#include "event-reporter/report/watch_lag.hpp"
#include "k8s-client/informer.hpp"

namespace gitops::reporter {

// Reports every change of the applications in the shards that this process holds.
//
// The informer delivers the changes, and ChangeTracker decides which are due. Their keys wait in the
// ReportQueue, whose workers call ApplicationReporter, which posts the difference to the ledger. So a
// change passes through this class once, in on_change().
//
// An application of another Argo CD in the same cluster is not reported. A new Application that names
// no controller waits until its Argo CD is known; one that was reported before is reported as
// deleted.
//
// Two kinds of change have no watch event. Applications that were deleted while the process was down
// are in the ledger and not in the first complete list. Changes of resources are found by reading the
// resource trees in turns, since Argo CD 3 keeps the health of resources out of the Application.
// After the deletion of a parent Application its children are reported as root applications, and
// after its creation as its resources.
//
// Loop thread only. Runs as tasks of the group given to start(); the arguments outlive it.
class Reporter {
 public:
  struct Options {
    std::string own_namespace;
    std::vector<std::string> application_namespaces;  // patterns; empty: only the own namespace
    ChangeTracker::Options changes = {};
    ReportQueue::Options queue = {};
    // The period in which each resource tree is read once.
    std::chrono::milliseconds sweep = std::chrono::minutes(5);
    // The period in which each application is reported again once (FullReconcile).
    std::chrono::milliseconds reconcile = std::chrono::hours(24);
    ApplicationReporter::Options application = {};
    k8s::Reflector::Options reflector;
  };
  Reporter(const Executor& executor, k8s::Client& kubernetes, Gatherer& gatherer, Ledger& ledger,
           Delivery& delivery, Options options, Metrics& metrics);

  void start(TaskGroup& group);
  // Starts no further report; reports in flight continue.
  void stop() { queue_.stop(); }

  // Returns the observer for ShardLeases: claimed(), released() and busy().
  [[nodiscard]] ChangeTracker& changes() { return changes_; }

  // See Resync::Options::listed.
  [[nodiscard]] std::optional<Resync::Listed> listed() const;

  [[nodiscard]] std::vector<ReadyCheck> ready_checks();
  // Returns the entries of /statusz.
  [[nodiscard]] StatusReport status() const;
  // Returns all applications of this Argo CD, in all shards.
  [[nodiscard]] std::vector<k8s::ObjectKey> applications() const;

 private:
  // The Argo CD of an Application: the one in the own namespace, or another one.
  enum class Owner { ours, other, unknown };

  void on_change(const k8s::Change& change);
  void start_epoch();
  [[nodiscard]] std::string watched_namespace() const;
  [[nodiscard]] bool watches(std::string_view ns) const;
  [[nodiscard]] Owner owner_of(const k8s::Record& record) const;
  [[nodiscard]] bool is_ours(const k8s::Record& record) const {
    return owner_of(record) == Owner::ours;
  }
  void report_children(const k8s::ObjectKey& parent);
  void report_due_children();
  bool index_children();
  [[nodiscard]] std::set<std::string> children_of(const k8s::ObjectKey& parent) const;

  Task<> find_deleted();
  Task<> sweep(std::size_t share);
  Task<> check_tree(std::string key, std::string project);
  Task<> tick();

  k8s::Client& kubernetes_;
  Gatherer& gatherer_;
  Ledger& ledger_;
  Delivery& delivery_;
  Options options_;
  Log log_{"reporter"};
  ReportQueue queue_;
  WatchLag lag_;
  TrackedApplications objects_;
  ChangeTracker changes_;
  FullReconcile reconcile_;
  Children children_;
  ApplicationReporter application_reporter_;
  k8s::Informer informer_;
  k8s::Informer::Subscription subscription_;
  UndeliveredCheck undelivered_;

  std::optional<TrackingSettings> tracking_;  // by which children_ was made; absent: it is empty
  // Applications that were created or deleted, until their children are due.
  std::vector<k8s::ObjectKey> parents_;
  // Applications that no replica had reported before, until the first complete list.
  std::vector<k8s::ObjectKey> new_;
  std::uint64_t epoch_ = 0;   // epoch of the informer
  bool argocd_well_ = false;  // as of the last tick
  bool argocd_answered_ = false;

  Gauge& applications_;
  Counter& sweeps_;
};

}  // namespace gitops::reporter
