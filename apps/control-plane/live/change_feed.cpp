#include "control-plane/live/change_feed.hpp"

#include <algorithm>
#include <utility>

#include <prometheus/counter.h>

#include "control-plane/accounts/revocations.hpp"
#include "control-plane/projection/event_text.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr auto kReadLimit = std::chrono::seconds(2);
constexpr auto kPause = std::chrono::milliseconds(20);  // between reads: commits in between are one
constexpr Micros kLateCommits = 120LL * 1'000'000;      // the rows of a transaction may be that old
// Rows are kept for 10 minutes; a cursor that is this old may have missed some.
constexpr Micros kCursorAge = 5LL * 60 * 1'000'000;

}  // namespace

struct ChangeFeed::Reading {
  ChangeCursor cursor = {};
  std::vector<OutboxChange> changes = {};
  bool is_missed = false;
  bool has_more = false;
  std::vector<RecordedRevocation> revocations = {};
};

ChangeFeed::ChangeFeed(const Executor& executor, store::Database& database, Metrics& metrics,
                       Options options, FeedEvents events)
    : database_(database),
      options_(std::move(options)),
      events_(std::move(events)),
      woken_(executor),
      changes_(metrics.counter("gitops_control_plane_live_changes_total",
                               "Changes that were read for open pages")),
      failures_(metrics.counter("gitops_control_plane_live_read_failures_total",
                                "Reads of changes that failed")),
      notices_(database.engine() == store::Engine::sqlite
                   ? nullptr
                   : std::make_unique<ChangeNotices>(executor, metrics, options_.location,
                                                     options_.instance,
                                                     [this] {
                                                       is_woken_ = true;
                                                       woken_.notify_all();
                                                     })),
      tasks_(executor) {}

ChangeFeed::~ChangeFeed() = default;

void ChangeFeed::start() {
  succeeded_at_ = Clock::now();
  read_at_ = micros_at(wall_now());
  if (notices_) notices_->start();
  tasks_.spawn("changes", [this] { return run(); });
}

Task<> ChangeFeed::stop() {
  tasks_.cancel();
  co_await tasks_.join();
  if (notices_) co_await notices_->stop();
}

void ChangeFeed::committed(std::int64_t no) {
  is_woken_ = true;
  woken_.notify_all();
  if (notices_) notices_->announce(no);
}

Task<> ChangeFeed::run() {
  while (true) {
    is_woken_ = false;
    while (co_await poll()) {
    }
    if (!is_woken_) co_await woken_.wait(deadline_after(options_.poll));
    co_await sleep_for(kPause);
  }
}

Result<ChangeFeed::Reading> ChangeFeed::read(store::Connection& connection,
                                             const ChangeCursor& cursor, bool is_wanted,
                                             bool was_long_ago, const Options& options,
                                             Micros revoked_since) {
  auto heads = outbox_heads(connection);
  if (!heads) return std::unexpected(std::move(heads.error()));
  auto revocations = revocations_since(connection, revoked_since);
  if (!revocations) return std::unexpected(std::move(revocations.error()));
  Reading reading{.cursor = cursor_at(*heads), .revocations = std::move(*revocations)};
  if (!is_wanted) return reading;
  const auto plan =
      plan_reading(cursor, *heads, was_long_ago ? Vanished::are_missed : Vanished::are_known);
  reading.is_missed = plan.has_gap || plan.changes > options.most;
  if (reading.is_missed) return reading;
  // Outboxes without rows leave the cursor; the others move on as far as they are read.
  for (auto& [instance, number] : reading.cursor.numbers) {
    const auto known = cursor.numbers.find(instance);
    number = known == cursor.numbers.end() ? 0 : known->second;
  }
  auto changes = read_changes(connection, plan, options.page, reading.cursor);
  if (!changes) return std::unexpected(std::move(changes.error()));
  std::erase_if(reading.cursor.numbers, [](const auto& entry) { return entry.second == 0; });
  reading.has_more = static_cast<std::int64_t>(changes->size()) < plan.changes;
  reading.changes = std::move(*changes);
  return reading;
}

// Returns whether there is more to read at once.
Task<bool> ChangeFeed::poll() {
  const auto now = micros_at(wall_now());
  const bool is_wanted = is_begun_ && events_.is_wanted();
  const bool was_long_ago = now - read_at_ > kCursorAge;
  auto reading = co_await database_.read(
      deadline_after(kReadLimit),
      [cursor = cursor_, is_wanted, was_long_ago, options = options_,
       since = std::min(now, read_at_) - kLateCommits](store::Connection& connection) {
        return read(connection, cursor, is_wanted, was_long_ago, options, since);
      });
  if (!reading) {
    note_failure(reading.error());
    co_return false;
  }
  const bool has_more = reading->has_more;
  if (was_long_ago && is_begun_) events_.revoked("");
  read_at_ = now;
  succeeded_at_ = Clock::now();
  // Somebody who came during a read that passed changes over may have missed some: they are read from the cursor before.
  if (is_begun_ && !is_wanted && events_.is_wanted()) co_return true;
  take(std::move(*reading));
  if (std::exchange(is_stale_, false)) {
    log_.info("the database can be read again", {});
    events_.fresh();
  }
  co_return has_more;
}

void ChangeFeed::take(Reading reading) {
  take_revocations(reading);
  cursor_ = reading.cursor;
  if (!std::exchange(is_begun_, true) || reading.is_missed) {
    events_.missed(cursor_);
    return;
  }
  changes_.Increment(static_cast<double>(reading.changes.size()));
  events_.changed(std::move(reading.changes), cursor_);
}

void ChangeFeed::take_revocations(const Reading& reading) {
  std::set<std::string> seen;
  for (const auto& revocation : reading.revocations) {
    // This process has cached nothing that was revoked before the first read.
    if (is_begun_ && !revocations_.contains(revocation.id)) events_.revoked(revocation.subject);
    seen.insert(revocation.id);
  }
  revocations_ = std::move(seen);
}

void ChangeFeed::note_failure(const Error& error) {
  failures_.Increment();
  if (is_stale_ || Clock::now() - succeeded_at_ < options_.stale_after) return;
  is_stale_ = true;
  if (repeated_.check("read", Clock::now()).pass) {
    log_.warning("changes cannot be read; open pages are told, and revocations count late",
                 {{"error", error.message}});
  }
  events_.stale(read_at_);
}

}  // namespace gitops::control_plane_server
