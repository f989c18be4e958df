#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"

// Objects that may be gone although nobody said so. A reporter without sequences tells a deletion once, and never what
// was deleted while it, or this database, was away. But it repeats every Application with its resources at least
// every 20 minutes, so one that is missing for longer is probably gone. It is shown as stale, never as deleted.
namespace gitops::control_plane_server {

inline constexpr Micros kReportPeriod = 20LL * 60 * 1'000'000;
inline constexpr Micros kStaleAfter = 3 * kReportPeriod;

struct StaleMarks {
  std::int64_t objects = 0;
  std::vector<std::int64_t> accounts = {};  // of these objects
};
// Marks at most `most` objects of Applications' reporters as stale: those that were not reported for kStaleAfter, of
// reporters without sequences that were heard of within kReportPeriod. The next event of an object ends it. It has no
// row in the outbox, so the caller tells the accounts' open pages. Runs within one transaction on the writer.
Result<StaleMarks> mark_stale_objects(store::Connection& connection, Micros now, std::int64_t most);

// For the test that prepares every statement.
std::span<const store::Statement> stale_object_statements();

}  // namespace gitops::control_plane_server
