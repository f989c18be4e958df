#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"

// Revocations in the database: every process evicts what they name from its cache and asks again for open streams, and a
// revoked runtime loses its tunnel even when this process ends before a tunnel server was told. Errors and threads as in
// account_store.hpp.
namespace gitops::control_plane_server {

inline constexpr Micros kRevocationsKept =
    10LL * 60 * 1'000'000;  // for the caches of other processes
// Time after which an undelivered disconnection is given up; the client is refused at its next connect in any case.
inline constexpr Micros kTunnelsKept = 7LL * 24 * 3600 * 1'000'000;

struct Revocation {
  std::int64_t account = 0;
  std::string subject;  // id of a key, a session, a user or an account
  std::string runtime;  // whose token it was; empty: no runtime's
};
// Records a revocation. Called in the transaction that revokes.
Result<void> add_revocation(store::Connection& connection, const Revocation& revocation,
                            Micros now);

// Records that what the callers of an account may see has changed: its rules, or its runtimes. The subject is the
// account's id. Called in the transaction that makes the change.
Result<void> add_account_change(store::Connection& connection, std::int64_t account, Micros now);

struct RecordedRevocation {
  std::string id;
  std::string subject;
};
// Returns the revocations since a time.
Result<std::vector<RecordedRevocation>> revocations_since(store::Connection& connection,
                                                          Micros since);

// A runtime whose tunnel is to be disconnected.
struct PendingTunnel {
  std::string id;       // of the revocation
  std::string account;  // id
  std::string runtime;
  Micros since = 0;
};
// Returns at most 1,000 pending tunnels, the oldest first.
Result<std::vector<PendingTunnel>> pending_tunnels(store::Connection& connection);
Result<void> finish_tunnel(store::Connection& connection, std::string_view id);

// Removes rows that no process needs any more.
Result<void> remove_old_revocations(store::Connection& connection, Micros now);

std::span<const store::Statement> revocation_statements();

}  // namespace gitops::control_plane_server
