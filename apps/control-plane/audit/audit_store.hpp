#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "control-plane/audit/audit_entry.hpp"

// Stores the audit log. Errors are those of Connection.
namespace gitops::control_plane_server {

// Appends entries to the chains of their accounts, and sets their numbers, times and digests. Runs within one
// transaction; other processes append to the same accounts before or after it.
Result<void> append_audit(store::Connection& connection, std::vector<AuditEntry> entries);

// Which entries are wanted. Empty members select all.
struct AuditFilter {
  std::int64_t account = 0;
  std::int64_t before_no = 0;  // only those before this number; 0: all
  Micros from = 0;
  Micros until = 0;  // exclusive; 0: no limit
  std::string caller_id = {};
  std::string action = {};
  std::optional<AuditResult> result = {};
};
// Returns the newest entries first, at most `limit`.
Result<std::vector<AuditEntry>> list_audit(store::Connection& connection, const AuditFilter& filter,
                                           std::int64_t limit);

// The state of an account's chain.
struct AuditVerdict {
  std::int64_t entries = 0;
  std::int64_t first_no = 0;  // above 1 when the retention has removed older ones
  std::int64_t last_no = 0;
  std::string digest = {};  // of the last entry: note it, to notice later that the end was cut off
  std::string broken = {};  // what is wrong; empty: nothing
};
// Computes every digest of an account again. An entry that was changed, removed or added between others is found.
Result<AuditVerdict> verify_audit(store::Connection& connection, std::int64_t account);

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> audit_statements();

}  // namespace gitops::control_plane_server
