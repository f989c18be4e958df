#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/worker_pool.hpp"
#include "event-reporter/argo/gather.hpp"
#include "event-reporter/delivery/delivery.hpp"
#include "event-reporter/event/application_events.hpp"
#include "event-reporter/ledger/ledger.hpp"
#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/newest_states.hpp"
#include "event-reporter/report/report_plan.hpp"
#include "event-reporter/report/report_runner.hpp"
#include "event-reporter/report/report_work.hpp"
#include "k8s-client/client.hpp"

namespace gitops::reporter {

// Returns the Application of a key "namespace/name".
[[nodiscard]] k8s::ObjectKey application_key(std::string_view key);

// Reports one application: reads its snapshot, posts the events whose digests differ from the ledger's, first
// the application's and then those of its resources, and records each acknowledgement. Keys are
// "namespace/name"; only one call per key may run at a time. Loop thread only; the arguments outlive it.
//
// An event that is refused for good gets a mark in the ledger, and is not due while its content is the same.
// An Error means that an event is still due; its retry_after is set when an early retry is useless.
class ApplicationReporter final : public ObjectReporter {
 public:
  struct Options {
    std::size_t resource_workers = 10;  // events of one application in flight at a time
    // Limits of the wait of the application's own event for missing responses of Argo CD: this number
    // of failures in a row, or this time since the oldest change, whichever comes first.
    WaitLimits wait_limits = {};
    // Pauses between attempts to fill a gap in Argo CD's responses about one application: the first one, and
    // the longest. They double, since most gaps end soon.
    std::chrono::milliseconds first_gap_retry = std::chrono::seconds(2);
    std::chrono::milliseconds gap_retry = std::chrono::minutes(5);
    bool resend_on_revision = false;  // a new revision makes every resource due
    // Size below which an application that was read in parts is read as a whole again.
    std::size_t whole_below = std::size_t{16} << 20;
  };
  ApplicationReporter(const Executor& executor, k8s::Client& kubernetes, Gatherer& gatherer,
                      Ledger& ledger, ChangeTracker& changes, Delivery& delivery, Options options,
                      Metrics& metrics);

  // Implementation of ObjectReporter.
  Task<Result<void>> report_gone(Grant grant, std::string key, std::string tombstone) override;
  Task<Result<void>> report_predecessor(Grant grant, std::string key, std::string uid) override;
  Task<Result<bool>> report_state(Grant grant, const std::string& key, const DirtyWork& work,
                                  const ReportAttempt& attempt) override;
  Task<Result<void>> report_missed(Grant grant, std::string key, const DirtyWork& work) override;

  struct Live {
    std::string key;
    Grant grant;                        // the grant of an owner
    std::string text;                   // the Application's JSON; empty: the newest state is read
    std::optional<Digest> change = {};  // change_digest() of the text; absent: not known
    bool superseded = false;  // a newer state follows, and covers the events of the resources
    bool heartbeat = false;   // the application's event is due even without a change
    Clock::time_point since = Clock::now();  // time of the oldest change
    ReportAttempt attempt = {};
  };
  // Reports a state. Returns false when the text had to be read and there is no such Application.
  Task<Result<bool>> report_live(Live live);

  // Reports the deletion of resources that this process reported and that the Application no longer
  // has. `text` is an Application that another replica reports now.
  Task<Result<void>> report_lost_parts(Grant grant, std::string key, std::string text);

  // Starts a new epoch after the cluster was restored from a backup: forgets the resourceVersions from
  // before. Requires that no report is in flight.
  void start_epoch() {
    newest_.forget_all([](const std::string&) { return true; });
  }
  // Returns the states that this process reported.
  [[nodiscard]] NewestStates& newest_states() { return newest_; }

  // Returns whether Argo CD's resource tree differs from that of the last report. Makes one read.
  // Finds changes of resources that do not change the Application.
  Task<Result<bool>> tree_changed(std::string key, std::string project);

 private:
  // The part of an application's resources that one report covers, and the findings of the report.
  struct Part {
    Gatherer::Reads reads = Gatherer::Reads::all;
    argo::ObjectFilter only = {};  // these resources; the others are not known
    bool is_last = true;           // after its report no event is due, unless something is missing
    bool lists = false;            // the caller needs `resources` and `bytes`
    bool too_large = false;        // the response about it is too large; nothing was reported
    bool outdated = false;         // a newer state was reported before; nothing was reported
    bool overtaken = false;        // the watch has delivered a newer state
    std::vector<ResourceId> resources = {};  // all resources of the application
    std::size_t bytes = 0;                   // size of the response about the part
  };
  // Reports a part. `live` keeps the text of the Application when there may be further parts.
  Task<Result<bool>> report_part(Live& live, Part& part);
  Task<Result<bool>> report_first_part(Live& live, Part& part);
  Task<Result<bool>> report_in_parts(Live& live);
  Task<Result<void>> report_unseen_predecessor(Grant grant, std::string key);
  Task<std::optional<Gathered>> gather(Live& live, const Part& part);
  Task<> until_rest_must_end(const Live& live, Digest state);
  Task<> until_another_state(std::string key, Digest state);
  // Returns whether the report waits for the missing parts.
  [[nodiscard]] bool waits(const Live& live, const MissingParts& missing, bool in_deletion) const;
  // The events of a snapshot, for the plan and the posts of its report.
  using Events = std::shared_ptr<const ApplicationEvents>;  // jobs of the pools share them
  struct EventSet {
    Events events;
    std::optional<Digest> tree;  // digest of its resource tree
    MissingParts missing;
    Error why;  // reason of missing parts
    bool lacks_commits = false;
    bool large = false;
  };
  static void add_unusable(EventSet& made, const MissingParts& came);
  Task<Result<EventSet>> make(Gathered gathered);
  // Makes the events of a deleted Application, or of resources that it lost.
  Task<Result<Events>> make_gone(AppView app);
  Task<Result<LedgerEntry>> entry_for(const Grant& grant, const std::string& key, std::string uid);
  Task<Result<bool>> report_made(const Live& live, const Part& part, const EventSet& made,
                                 LedgerEntry entry);
  Task<Result<void>> adopt(const Grant& grant, const std::string& key, LedgerEntry& entry);
  Task<Result<void>> store_refused(const std::string& key);
  Task<Result<bool>> add_inventory(const std::string& row, LedgerEntry& entry);
  void count_error(const Error& error, std::string_view peer = "argocd");
  void note_unreadable(const std::string& key, const Error& error);
  [[nodiscard]] Error in_time(Error error, const Live& live) const;
  [[nodiscard]] Error lasting(Error error, unsigned failures) const;

  Executor executor_;
  k8s::Client& kubernetes_;
  Gatherer& gatherer_;
  Ledger& ledger_;
  ChangeTracker& changes_;
  Delivery& delivery_;
  ReportRunner runner_;
  Options options_;
  DigestScope scope_;
  Metrics& metrics_;
  Counter& unreadable_;
  Log log_{"reporter"};
  RepeatFilter repeats_{std::chrono::minutes(1)};
  NewestStates newest_;  // states reported by this process
  // Applications whose managed resources are read in parts, since one response is too large.
  std::unordered_set<std::string> in_parts_;
  // Applications that were reported without parts that Argo CD did not tell, with the digest of the state.
  std::unordered_map<std::string, Digest> incomplete_;
  std::size_t long_reads_ = 0;  // reads for the missing parts, in flight
  WorkerPool pool_;             // reads large snapshots and trees
};

}  // namespace gitops::reporter
