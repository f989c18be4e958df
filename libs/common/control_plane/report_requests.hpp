#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The objects whose events the control plane asks for again: the head X-Intake-Again of an acknowledgement
// (docs/reference/event-guarantees.md, "Reporting an application again"). Pure.
namespace gitops::control_plane {

// Most requests of one head, and most bytes of a uid.
inline constexpr std::size_t kMaxReportRequests = 20;
inline constexpr std::size_t kMaxRequestedUid = 64;

struct ReportRequest {
  // Uid of the Application; mode `resource`: of the object.
  std::string uid = {};
  // A later request for the same object has a higher one. Positive.
  std::int64_t number = 0;

  bool operator==(const ReportRequest&) const = default;
};

// Returns whether a head can name this uid: not empty, at most kMaxRequestedUid bytes of A-Z, a-z, 0-9 and '-'.
[[nodiscard]] bool is_requestable(std::string_view uid);

// Returns the head: "<uid>;<number>, <uid>;<number>". Requires at most kMaxReportRequests with requestable uids.
[[nodiscard]] std::string to_head(std::span<const ReportRequest> requests);
// Reads a head. A head that to_head() cannot have written asks for nothing.
[[nodiscard]] std::vector<ReportRequest> read_report_requests(std::string_view head);

}  // namespace gitops::control_plane
