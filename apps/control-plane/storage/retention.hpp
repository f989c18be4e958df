#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "control-plane/projection/object.hpp"

// Retention: rows that the database removes by age, and by size.
namespace gitops::control_plane_server {

struct RetentionPolicy {
  std::chrono::hours timeline{24 * 90};  // and releases that newer ones have followed
  std::chrono::hours gone{24 * 30};      // objects that were deleted
  std::chrono::hours quarantine{24 * 7};
  std::chrono::hours source_reports{24 * 7};  // payloads of webhooks, errors of event sources
  std::chrono::hours audit{24 * 400};
  std::chrono::minutes changes{10};  // what pages have heard of
  std::chrono::minutes orphans{10};  // objects of runtimes that were deleted
};

// The times before which rows are removed.
struct RetentionCuts {
  Micros timeline = 0;
  Micros gone = 0;
  Micros quarantine = 0;
  Micros source_reports = 0;
  Micros audit = 0;
  Micros changes = 0;
  Micros orphans = 0;
  Micros sessions = 0;  // that have expired
  Micros report_requests = 0;
};
RetentionCuts retention_cuts(const RetentionPolicy& policy, Micros now);

// Returns the numbers of all accounts.
Result<std::vector<std::int64_t>> account_numbers(store::Connection& connection);

// Rows of one call that the writer can spare beside a batch.
inline constexpr std::int64_t kTrickle = 200;

// Removes at most `most` rows that are due, and twenty times as many of the outbox, and returns how many it removed; fewer
// than `most` mean that nothing is due any more. Runs within one transaction on the writer. A deleted object goes with its
// texts, labels, timeline and releases and counts as one. The current release of an Application stays.
Result<std::int64_t> remove_expired(store::Connection& connection, const RetentionCuts& cuts,
                                    std::int64_t most);

// Removes at most `most` objects of runtimes that are not registered, with all that they have, and returns how many it
// removed: those that were last heard of before this time. They are left when the deletion of a runtime is cut short, or
// when an event that was on its way is stored after it. Runs within one transaction on the writer.
Result<std::int64_t> remove_orphans(store::Connection& connection, Micros before,
                                    std::int64_t most);

// --- The bound of the size ---

enum class SizeState : std::uint8_t {
  normal,
  warning,   // from 80 % of the limit: people are told
  trimming,  // from 90 %: the oldest history is cut
  full       // from 97 %: events are answered 503, reading goes on
};
std::string_view to_string(SizeState state);

// The size of the database's files, and the bytes within them that were deleted and may be used again. A row of the
// database, so that a restart and other processes do not cut once more what was cut already.
struct StorageRoom {
  std::int64_t bytes = 0;
  std::int64_t freed = 0;

  bool operator==(const StorageRoom&) const = default;
};

// Decides from the size of the database. PostgreSQL's files do not shrink when rows are deleted: what was deleted and
// may be used again counts as free until the files grow. Pure but for what it remembers; one thread.
class StorageBound {
 public:
  // `limit` in bytes; 0: none.
  explicit StorageBound(std::int64_t limit) : limit_(limit) {}

  // Goes on from what the database knows, which is newer when another process has cut rows.
  void resume(const StorageRoom& known) { room_ = known; }
  // `bytes` as database_size() tells them.
  SizeState update(std::int64_t bytes);
  // Rows of the timeline to cut next, at most `most`; 0 unless trimming or full. Cutting stops below 85 %.
  [[nodiscard]] std::int64_t rows_to_cut(std::int64_t most) const;
  // Tells that rows were cut.
  void add_cut(std::int64_t rows);
  [[nodiscard]] SizeState state() const { return state_; }
  [[nodiscard]] const StorageRoom& room() const { return room_; }
  // Used part of the limit; 0 without a limit.
  [[nodiscard]] int percent() const;

 private:
  [[nodiscard]] std::int64_t used() const;

  std::int64_t limit_;
  StorageRoom room_;
  bool is_cutting_ = false;
  SizeState state_ = SizeState::normal;
};

// Bytes that the database takes: on SQLite without its free pages.
Result<std::int64_t> database_size(store::Connection& connection);
// Returns what keep_size() and cut_oldest_history() have stored; zeros before the first one.
Result<StorageRoom> storage_room(store::Connection& connection);
// Stores the size of the database. Files that grow or shrink by some bytes have used up or given back as many freed ones.
Result<void> keep_size(store::Connection& connection, std::int64_t bytes);

// Cuts the oldest rows of the timeline, of each account by its share, at most `rows` in all, stores how many bytes that
// has freed, and returns the number of rows. Runs within one transaction on the writer. Accounts with more rows than are
// counted have equal shares: to count all rows of a large database would keep its events waiting.
Result<std::int64_t> cut_oldest_history(store::Connection& connection, std::int64_t rows,
                                        std::int64_t most_counted = 10'000);

// For the test that prepares every statement.
std::span<const store::Statement> retention_statements();

}  // namespace gitops::control_plane_server
