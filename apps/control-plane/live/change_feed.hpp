#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/store/database.hpp"
#include "control-plane/live/change_notices.hpp"
#include "control-plane/live/change_store.hpp"

namespace gitops::control_plane_server {

// Functions that the feed calls on the loop.
struct FeedEvents {
  // Whether anybody wants changes; else they are passed over.
  std::function<bool()> is_wanted;
  // Changes in the order of each process, and the cursor behind them.
  std::function<void(std::vector<OutboxChange>, const ChangeCursor&)> changed;
  // Changes were missed: everybody has to read everything again.
  std::function<void(const ChangeCursor&)> missed;
  // The id of a key, a session, a user or an account whose permissions were revoked or changed; empty: of any.
  std::function<void(const std::string&)> revoked;
  std::function<void(Micros since)> stale;
  std::function<void()> fresh;
};

// Follows the changes and revocations that the processes on one database commit. Its own commits wake it at once, those
// of others by ChangeNotices, and it polls each second in any case. An outage of the database loses nothing: what was
// committed meanwhile is read after it. Loop thread only; call stop() before the destruction.
class ChangeFeed {
 public:
  struct Options {
    store::Location location = {};  // SQLite has no other processes, so no notices
    std::string instance = {};      // of this process in the outbox
    Clock::duration poll = std::chrono::seconds(1);
    Clock::duration stale_after = std::chrono::seconds(2);  // without a successful read
    std::int64_t page = 5'000;                              // rows of one read
    std::int64_t most = 20'000;  // changes behind which it does not read, but tells `missed`
  };
  ChangeFeed(const Executor& executor, store::Database& database, Metrics& metrics, Options options,
             FeedEvents events);
  ~ChangeFeed();

  void start();
  Task<> stop();
  // This process has committed the change of this number.
  void committed(std::int64_t no);
  // This process has committed something else that the others should read, such as a revocation.
  void announce() { committed(0); }
  // Whether the first read has succeeded; and whether reads have failed for a while.
  [[nodiscard]] bool has_begun() const { return is_begun_; }
  [[nodiscard]] bool is_stale() const { return is_stale_; }

 private:
  struct Reading;
  Task<> run();
  Task<bool> poll();
  static Result<Reading> read(store::Connection& connection, const ChangeCursor& cursor,
                              bool is_wanted, bool was_long_ago, const Options& options,
                              Micros revoked_since);
  void take(Reading reading);
  void take_revocations(const Reading& reading);
  void note_failure(const Error& error);

  store::Database& database_;
  Options options_;
  FeedEvents events_;
  ChangeCursor cursor_;
  bool is_begun_ = false;  // the cursor is that of the database
  bool is_stale_ = false;
  bool is_woken_ = false;
  Micros read_at_ = 0;  // wall time of the last successful read
  Clock::time_point succeeded_at_;
  std::set<std::string> revocations_;  // ids that were told
  gitops::Event woken_;
  Log log_{"live"};
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Counter& changes_;
  Counter& failures_;
  std::unique_ptr<ChangeNotices> notices_;  // null on SQLite
  TaskGroup tasks_;
};

}  // namespace gitops::control_plane_server
