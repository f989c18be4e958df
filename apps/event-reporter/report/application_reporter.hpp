#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "event-reporter/argo/gather.hpp"
#include "event-reporter/delivery/delivery.hpp"
#include "event-reporter/event/application_events.hpp"
#include "event-reporter/ledger/ledger.hpp"
#include "event-reporter/report/difference.hpp"
#include "event-reporter/report/newest_states.hpp"

namespace gitops::reporter {

// The Application that a key "namespace/name" stands for.
[[nodiscard]] k8s::ObjectKey application_key(std::string_view key);

// Reports one application: reads its snapshot, posts the events whose digests differ from the
// ledger's, first the application's and then those of its resources, and records each
// acknowledgement. Keys are "namespace/name"; only one call per key may run at a time. Loop thread
// only; the arguments outlive it.
//
// An Error means that an event is still due; its retry_after is set when an early retry is useless.
class ApplicationReporter {
 public:
  struct Options {
    std::size_t resource_workers = 10;  // events of one application in flight at the same time
    unsigned patience = 5;  // failures in a row until the report goes out without a missing answer
    // Pause between attempts to fill a lasting gap in Argo CD's answers about one application.
    std::chrono::milliseconds gap_retry = std::chrono::minutes(5);
    bool resend_on_revision = false;  // a new revision makes every resource due
  };
  ApplicationReporter(const Executor& executor, Gatherer& gatherer, Ledger& ledger,
                      Delivery& delivery, Options options, Metrics& metrics);

  struct Live {
    std::string key;
    std::string text;         // the Application's JSON; empty: the newest state is read
    bool superseded = false;  // a newer state follows, and brings the events of the resources
    bool heartbeat = false;   // the application's event is due even without a change
    unsigned failures = 0;    // failed attempts in a row
  };
  // False when the text had to be read and there is no such Application.
  Task<Result<bool>> report_live(Live live);
  // Reports that an Application and its resources were deleted.
  Task<Result<void>> report_gone(std::string key, std::string tombstone);

  // `text` is an Application that another replica reports now. Reports the deletion of resources that
  // this process reported and that the Application no longer has.
  Task<Result<void>> report_lost_parts(std::string key, std::string text);

  // Whether Argo CD's resource tree differs from that of the last report. Makes one read. Finds
  // changes of resources without a write to the Application.
  Task<Result<bool>> tree_changed(std::string key, std::string project);

 private:
  Task<Result<void>> adopt(const std::string& key, LedgerEntry& entry);
  Task<Result<bool>> add_inventory(const std::string& row, LedgerEntry& entry);
  Task<> announce(const std::string& key, LedgerEntry& entry, const ApplicationEvents& events,
                  const Difference& due);
  Task<Result<void>> post_resources(const std::string& key, const ApplicationEvents& events,
                                    std::string_view version, LedgerEntry& entry,
                                    const Difference& due, WallTime now);
  Task<Result<Delivered>> post(std::string part, std::string subject, std::string id,
                               std::string body);
  void count_error(const Error& error);
  [[nodiscard]] Error lasting(Error error, unsigned failures) const;

  Executor executor_;
  Gatherer& gatherer_;
  Ledger& ledger_;
  Delivery& delivery_;
  Options options_;
  Metrics& metrics_;
  NewestStates newest_;  // reported by this process
};

}  // namespace gitops::reporter
