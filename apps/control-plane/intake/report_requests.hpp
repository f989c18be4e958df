#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/control_plane/report_requests.hpp"
#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/store/database.hpp"
#include "control-plane/projection/object.hpp"
#include "control-plane/storage/report_request_store.hpp"

namespace gitops::control_plane_server {

// The data of a stored event that requests depend on.
struct ReportArrival {
  std::string runtime = {};
  std::string reporter = {};  // X-Reporter
  Origin origin = Origin::application;
  std::string uid =
      {};  // of an Application, or of an object of mode `resource`; empty: of another object
  std::int64_t sequence = 0;
};
// Returns the data of an event.
[[nodiscard]] ReportArrival report_arrival(const ObjectState& state, std::string reporter);

// The open requests of an account, and which reporters were told of them. Pure.
class OpenReportRequests {
 public:
  // Takes the requests as the database has them. Those that were there keep the reporters that were told.
  void replace(std::vector<ReportRequestRow> rows);
  // Ends the request that this event answers, and returns it: the reporter was told, and the event is newer than what
  // was stored when the user asked. An event on its way at that time ends it early, when it comes after the answer that
  // told; the reporter has the request by then.
  [[nodiscard]] std::optional<ReportRequestRow> close(const ReportArrival& arrival);
  // Returns what to tell the reporter of an event: requests of its runtime and origin, at most
  // control_plane::kMaxReportRequests, those first that it was told longest ago.
  [[nodiscard]] std::vector<control_plane::ReportRequest> tell(const ReportArrival& arrival);
  [[nodiscard]] bool is_empty() const { return open_.empty(); }

 private:
  struct Open {
    ReportRequestRow row;
    std::map<std::string, std::uint64_t, std::less<>> told;  // round of the last time, by reporter
  };
  std::vector<Open> open_;
  std::uint64_t round_ = 0;
};

// Tells reporters with the answers to their events what they are to report again. Reads the requests of an account when
// an event of it arrives, at most once a second, so those of another process count within a second. Loop thread only.
class ReportRequests {
 public:
  // The database outlives it.
  explicit ReportRequests(store::Database& database) : database_(database) {}

  // Returns the head X-Intake-Again of the answer to an event that was stored; empty: none. A database that cannot be
  // read asks for nothing.
  Task<std::string> head(std::int64_t account, ReportArrival arrival);

 private:
  struct Account {
    OpenReportRequests open;
    std::optional<Clock::time_point> read_at;
  };
  Task<> refresh(std::int64_t number, std::shared_ptr<Account> account);

  store::Database& database_;
  std::map<std::int64_t, std::shared_ptr<Account>> accounts_;
  Log log_{"intake"};
  RepeatFilter repeated_{std::chrono::minutes(1)};
};

}  // namespace gitops::control_plane_server
