#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "control-plane/projection/source_report.hpp"

// Stores the reports of event sources: the payloads of Git webhooks, and the newest error of each object. Errors are
// those of Connection.
namespace gitops::control_plane_server {

inline constexpr std::int64_t kMaxSourceReports =
    1'000;  // rows of one runtime in each table; the oldest are removed

// Stores a payload. One that is stored already stays as it is.
Result<void> put_event_payload(store::Connection& connection, std::int64_t account,
                               std::string_view runtime, const EventPayload& payload);
// Returns the payloads of a runtime, the newest first, at most `limit`. invalid_data: a damaged row.
Result<std::vector<EventPayload>> list_event_payloads(store::Connection& connection,
                                                      std::int64_t account,
                                                      std::string_view runtime, std::int64_t limit);

// Stores an error, which replaces an older one of the same object.
Result<void> put_source_error(store::Connection& connection, std::int64_t account,
                              std::string_view runtime, const SourceError& error, Micros at);
struct DatedSourceError {
  SourceError error;
  Micros at = 0;
};
// Returns the errors of a runtime, the newest first, at most `limit`.
Result<std::vector<DatedSourceError>> list_source_errors(store::Connection& connection,
                                                         std::int64_t account,
                                                         std::string_view runtime,
                                                         std::int64_t limit);

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> source_report_statements();

}  // namespace gitops::control_plane_server
