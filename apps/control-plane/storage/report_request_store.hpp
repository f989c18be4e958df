#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"

// Requests of users for the events of an Application again (docs/reference/event-guarantees.md, "Reporting an
// application again"). Errors are those of Connection, unless a function says more.
namespace gitops::control_plane_server {

// A request is open for this long: more than a reporter is silent (--heartbeat).
inline constexpr Micros kReportRequestLife = 10LL * 60 * 1'000'000;
// Rows stay twice as long, so that numbers grow although the clocks of two processes differ.
inline constexpr Micros kReportRequestsKept = 2 * kReportRequestLife;
// Applications of an account with an open request.
inline constexpr std::int64_t kMaxReportRequests = 100;
// Objects of mode `resource` that are asked for together with their Application.
inline constexpr std::int64_t kMaxRequestedObjects = 200;

struct ReportRequestRow {
  std::string runtime = {};
  std::string uid = {};          // of the Application, or of an object of mode `resource` in it
  std::string application = {};  // uid of the Application
  std::int64_t number = 0;  // the time of the request; a later one for the object has a higher one
  std::int64_t sequence = 0;  // of the object's last event at that time

  // The origin of the events that are asked for.
  [[nodiscard]] Origin origin() const {
    return uid == application ? Origin::application : Origin::resource;
  }
  bool operator==(const ReportRequestRow&) const = default;
};

struct ReportRequestOutcome {
  Micros at = 0;        // of the request
  bool is_new = false;  // false: it was open, and no event of the Application has arrived since
};
// Asks for the events of an Application, and for those of the Rollouts and Workflows among its resources with their
// ReplicaSets and AnalysisRuns. Errors: too_many_requests (kMaxReportRequests); unsupported, when no head can name its
// uid. Runs within a transaction.
Result<ReportRequestOutcome> request_report(store::Connection& connection, std::int64_t account,
                                            const ObjectState& application, Micros now);

// Returns the open requests, the oldest first.
Result<std::vector<ReportRequestRow>> open_report_requests(store::Connection& connection,
                                                           std::int64_t account, Micros now);
// Ends a request. A later one for the same object goes on.
Result<void> close_report_request(store::Connection& connection, std::int64_t account,
                                  const ReportRequestRow& request);

std::span<const store::Statement> report_request_statements();

}  // namespace gitops::control_plane_server
