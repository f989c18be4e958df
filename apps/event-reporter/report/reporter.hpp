#pragma once

#include <cstddef>
#include <cstdint>
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
#include "event-reporter/ledger/ledger.hpp"
#include "event-reporter/report/application_reporter.hpp"
#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/report_queue.hpp"
#include "k8s-client/informer.hpp"

namespace gitops::reporter {

// Reports every change of the applications of the shards that this process holds.
//
// The informer says that an application changed; ChangeTracker knows whether that is due; its key
// then waits in the ReportQueue, whose workers have it reported (ApplicationReporter): what differs
// from what the ledger says is acknowledged.
//
// Changes that no watch tells of are found otherwise: what the ledger knows and the first complete
// list does not have is gone; resource trees are looked at in turns, since Argo CD 3 keeps the
// health of resources out of the Application.
//
// Loop thread only. Runs as tasks of the group given to start(); what is passed in outlives it.
class Reporter {
 public:
  struct Options {
    std::string own_namespace;
    std::vector<std::string> application_namespaces;  // patterns; empty: only the own namespace
    ChangeTracker::Options changes = {};
    ReportQueue::Options queue = {};
    // In which each resource tree is looked at once.
    std::chrono::milliseconds sweep = std::chrono::minutes(5);
    ApplicationReporter::Options application = {};
    k8s::Reflector::Options reflector;
  };
  Reporter(const Executor& executor, k8s::Client& kubernetes, Gatherer& gatherer, Ledger& ledger,
           Delivery& delivery, Options options, Metrics& metrics);

  void start(TaskGroup& group);
  // No further application is taken up; reports that are under way go on.
  void stop() { queue_.stop(); }

  // To be told of the shards that this process holds.
  [[nodiscard]] ChangeTracker& changes() { return changes_; }

  [[nodiscard]] std::vector<ReadyCheck> ready_checks();
  // For /statusz.
  [[nodiscard]] std::string status() const;
  // All applications that are seen, whoever reports them.
  [[nodiscard]] std::vector<k8s::ObjectKey> applications() const;

 private:
  void on_change(const k8s::Change& change);
  [[nodiscard]] bool watches(std::string_view ns) const;
  [[nodiscard]] bool is_ours(const k8s::Record& record) const;

  Task<> find_deleted();
  Task<> sweep();
  Task<> look_at(std::string key, std::string project);
  Task<Result<void>> report(const std::string& key, DirtyWork& work, unsigned failures);
  Task<Result<void>> report_predecessor(std::string key);
  Task<Result<void>> report_lost_parts(std::string key, std::string text);
  Task<> tick();

  k8s::Client& kubernetes_;
  Gatherer& gatherer_;
  Ledger& ledger_;
  Delivery& delivery_;
  Options options_;
  Log log_{"reporter"};
  ReportQueue queue_;
  ChangeTracker changes_;
  ApplicationReporter application_reporter_;
  k8s::Informer informer_;
  k8s::Informer::Subscription subscription_;

  bool argocd_well_ = false;  // as of the last tick
  bool argocd_answered_ = false;

  Gauge& applications_;
  Counter& sweeps_;
};

}  // namespace gitops::reporter
