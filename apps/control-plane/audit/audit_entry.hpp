#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

enum class AuditResult : std::uint8_t {
  done = 0,
  refused = 1,  // for its credential, its permission, its rate or its content
  failed = 2,
  not_known = 3,  // no answer of the database: it may have been done
};
[[nodiscard]] std::string_view to_string(AuditResult result);
// Returns the result of this name; nothing for another text.
[[nodiscard]] std::optional<AuditResult> audit_result_of(std::string_view name);

// An entry of the audit log: a request that changes something, or that was refused. It holds names and ids, never the
// body of a request, so no secret can be in it.
struct AuditEntry {
  std::int64_t account = 0;  // number of the account; 0: no account is known
  std::int64_t no = 0;       // ascending from 1 in an account, without gaps
  Micros at = 0;             // never before the entry with the number before
  std::string caller =
      {};  // name of the user, "service account NAME" or "runtime NAME"; empty: nobody
  std::string caller_id = {};  // id of the user or service account, or name of the runtime
  std::string peer = {};       // address of the client
  std::string action = {};     // field of a mutation, or method and path
  std::string target = {};     // what the arguments name: "name=prod"
  AuditResult result = AuditResult::done;
  std::string detail = {};  // reason of a refusal or a failure
  std::string request_id = {};

  bool operator==(const AuditEntry&) const = default;
};

// Returns the entry with long texts cut, without control characters and without user and password in URLs.
[[nodiscard]] AuditEntry cleaned(AuditEntry entry);

// Returns the digest of an entry, 32 bytes: SHA-256 of the digest before it and all of its values. So a change of one
// entry changes every later digest.
[[nodiscard]] std::string audit_digest(std::string_view before, const AuditEntry& entry);

// Returns the entries as CSV (RFC 4180) with a line of names. A cell that a spreadsheet would take for a formula gets an
// apostrophe in front.
[[nodiscard]] std::string audit_csv(const std::vector<AuditEntry>& entries);

}  // namespace gitops::control_plane_server
