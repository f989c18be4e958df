#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "event-reporter/delivery/delivery.hpp"
#include "event-reporter/ledger/ledger.hpp"
#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/report_plan.hpp"

namespace gitops::reporter {

// Makes the events of a plan when they are posted.
class EventSource {
 public:
  virtual ~EventSource() = default;
  // Returns the event with its labels, its id and its body; `uid` is that of the object.
  [[nodiscard]] virtual Delivery::Event make(const PlannedEvent& event, std::string_view uid,
                                             Sequence sequence) const = 0;
};

// Performs a ReportPlan: writes the ledger and posts the events, several at a time. Loop thread only;
// the arguments outlive it.
class ReportRunner {
 public:
  // `workers` is the number of events of one report that are in flight at a time.
  ReportRunner(const Executor& executor, Ledger& ledger, ChangeTracker& changes, Delivery& delivery,
               std::size_t workers);

  struct Target {
    Grant grant;
    std::string key;
    std::string row;         // the entry's row in the ledger: `key`, or a row of the inventory
    SpanContext trace = {};  // of the report
  };
  // Performs a plan and saves the entry as of its end; the caller erases the entry when the result
  // requires it. Neither posts nor writes after the end of the grant.
  Task<ReportEnd> perform(Target target, ReportPlan& plan, const EventSource& source);

 private:
  Task<Result<void>> write_ahead(const Target& target, ReportPlan& plan);
  Task<bool> post(const Target& target, ReportPlan& plan, const EventSource& source,
                  const PlannedEvent& event);
  Task<> post_parts(const Target& target, ReportPlan& plan, const EventSource& source,
                    std::size_t first);
  void save(const Target& target, ReportPlan& plan);

  Executor executor_;
  Ledger& ledger_;
  ChangeTracker& changes_;
  Delivery& delivery_;
  std::size_t workers_;
};

}  // namespace gitops::reporter
