#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/live/change_cursor.hpp"

// Reads the outbox, the table `change`, and what pages show besides objects. Errors and threads as in
// accounts/account_store.hpp.
namespace gitops::control_plane_server {

// Returns the outboxes of all processes that have rows. Reads one row of the index for each of them, however many rows
// they have.
Result<std::vector<OutboxHead>> outbox_heads(store::Connection& connection);

// A change of an object.
struct OutboxChange {
  std::int64_t account = 0;
  std::int64_t object = 0;
  std::string kind;
  std::string uid;        // of the object as it is now; empty: its row was removed
  std::string owner_uid;  // likewise, of the Application that manages it
};
struct OutboxPage {
  std::vector<OutboxChange> changes;
  std::int64_t last = 0;  // number of the last change; 0: there is none
};
// Returns at most `limit` changes of one process behind a number, of all accounts, in order.
Result<OutboxPage> changes_after(store::Connection& connection, std::string_view instance,
                                 std::int64_t no, std::int64_t limit);
// Returns the changes of a plan, at most `limit`, and moves the cursor behind them.
Result<std::vector<OutboxChange>> read_changes(store::Connection& connection,
                                               const ReadingPlan& plan, std::int64_t limit,
                                               ChangeCursor& cursor);

// A runtime as a page of runtimes shows it.
struct LiveRuntime {
  std::string name;
  std::string runtime_namespace;
  std::string cluster;
  Micros created_at = 0;
  Micros seen_at = 0;  // 0: never

  bool operator==(const LiveRuntime&) const = default;
};
// Returns the runtimes of an account, sorted by name.
Result<std::vector<LiveRuntime>> live_runtimes(store::Connection& connection, std::int64_t account);

// For the test that prepares every statement.
std::span<const store::Statement> change_statements();

}  // namespace gitops::control_plane_server
