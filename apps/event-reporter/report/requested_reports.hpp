#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/control_plane/report_requests.hpp"
#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "event-reporter/report/change_tracker.hpp"

namespace gitops::reporter {

// Reports single objects again that the control plane asks for (docs/reference/event-guarantees.md, "Reporting an
// application again"): all their events become due with new ids and sequences. A request is served once, however many
// acknowledgements repeat it: for each object it counts only when its number is above the last one. Objects that are not
// known are ignored. One whose report is under way becomes due when that has ended.
//
// Loop thread only; the arguments outlive it.
class RequestedReports {
 public:
  RequestedReports(const Executor& executor, ChangeTracker& changes, Metrics& metrics);

  // Takes the requests of an acknowledgement.
  void take(const std::vector<control_plane::ReportRequest>& requests);
  // Runs until it is cancelled.
  Task<> run();

 private:
  struct Waiting {
    std::string key;
    std::string uid;
    Clock::time_point until;  // then it is given up
  };
  void accept(const control_plane::ReportRequest& request, Clock::time_point now);
  Task<bool> settle(const Waiting& waiting);

  ChangeTracker& changes_;
  std::unordered_map<std::string, std::int64_t> heard_;  // numbers by uid, to be looked up
  std::unordered_map<std::string, std::int64_t> taken_;  // the last numbers by uid
  std::vector<Waiting> waiting_;
  gitops::Event asked_;
  Log log_{"reporter"};
  Counter& served_;
};

}  // namespace gitops::reporter
