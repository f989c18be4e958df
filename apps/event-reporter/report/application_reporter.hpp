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

// Brings one application up to date at the control plane: gathers its state, posts what differs
// from what the ledger says is acknowledged, the application first and then its resources, and
// writes down each acknowledgement. Keys are "namespace/name"; nobody reports the same key twice at
// a time. Loop thread only; what is passed in outlives it.
//
// An Error means that something of it is still due, whatever the reason; its retry_after is set
// when trying again soon is of no use.
class ApplicationReporter {
 public:
  struct Options {
    std::size_t resource_workers = 10;  // events of one application in flight at the same time
    unsigned patience = 5;  // failures in a row until an answer of Argo CD is done without
    // Between attempts to get what Argo CD keeps failing to say about one application.
    std::chrono::milliseconds gap_retry = std::chrono::minutes(5);
    bool resend_on_revision = false;  // a new revision makes every resource due
  };
  ApplicationReporter(const Executor& executor, Gatherer& gatherer, Ledger& ledger,
                      Delivery& delivery, Options options, Metrics& metrics);

  struct Live {
    std::string key;
    std::string text;         // the Application's JSON; empty: the newest is read
    bool superseded = false;  // a newer state follows; resources are as of now, and go with that
    bool heartbeat = false;   // its own event is due in any case
    unsigned failures = 0;    // in a row so far
  };
  // False when the text had to be read and there is no such Application.
  Task<Result<bool>> report_live(Live live);
  // `text` is the last state of an Application that was deleted.
  Task<Result<void>> report_gone(std::string key, std::string text);

  // `text` is an Application that somebody else reports now: what this process once reported of it
  // and it has no more is reported gone.
  Task<Result<void>> report_lost_parts(std::string key, std::string text);

  // Whether Argo CD's resource tree is another than the one last reported. One read; for what
  // happens to resources without a write to the Application.
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
