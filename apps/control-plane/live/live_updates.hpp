#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"
#include "common/core/trace.hpp"
#include "common/store/database.hpp"
#include "control-plane/live/change_feed.hpp"
#include "control-plane/live/live_hub.hpp"

namespace gitops::control_plane_server {

// Live updates of this process: reads the rows of changed objects once for all subscribers, at most four times a second
// for each object, and gives them to the hub. Loop thread only; call stop() before the destruction, after the last
// subscription has ended.
class LiveUpdates {
 public:
  struct Options {
    ChangeFeed::Options feed = {};
    LiveHub::Options hub = {};
    Clock::duration round = std::chrono::milliseconds(50);
    Clock::duration per_object = std::chrono::milliseconds(250);
    Clock::duration runtimes = std::chrono::seconds(1);
    std::size_t rows_per_read = 512;
  };
  // `revoked` is called for each revocation in the database, also for those of this process.
  LiveUpdates(const Executor& executor, store::Database& database, Metrics& metrics,
              Options options, std::function<void(const std::string&)> revoked);
  ~LiveUpdates();

  void start();
  Task<> stop();

  // As in ChangeFeed.
  void committed(std::int64_t no) { feed_.committed(no); }
  void announce() { feed_.announce(); }
  // Makes the way of a committed change to open pages a span of `trace`, when a page shows the object.
  void follow(const OutboxChange& change, const SpanContext& trace);
  // Checks the subscribers with this account, user or credential: see Authenticator::on_forget().
  void check(const std::string& subject) { hub_.check(subject); }

  // A subscriber while it is kept.
  class Subscription {
   public:
    Subscription(LiveUpdates& updates, std::shared_ptr<LiveSubscriber> subscriber,
                 std::shared_ptr<gitops::Event> woken);
    Subscription(Subscription&& other) noexcept = default;
    Subscription& operator=(Subscription&&) = delete;
    ~Subscription();
    [[nodiscard]] LiveSubscriber& subscriber() const { return *subscriber_; }
    // Waits until the subscriber has news or must be checked, or for the deadline.
    Task<> wait(Deadline deadline) const;

   private:
    LiveUpdates* updates_;
    std::shared_ptr<LiveSubscriber> subscriber_;  // null: it was moved from
    std::shared_ptr<gitops::Event> woken_;
  };
  // Subscribes a caller. With the cursor of an earlier stream it gets what has changed since, when that is still known,
  // else `reset`. Errors: too_many_requests (limits), and those of the database.
  Task<Result<Subscription>> subscribe(CallerPtr caller, LiveTopics topics, std::string cursor,
                                       Deadline deadline);
  // Reads the permissions of a subscriber again, whose caller may have changed. It reads its page again.
  Task<Result<void>> authorise(LiveSubscriber& subscriber, CallerPtr caller, Deadline deadline);
  LiveHub& hub() { return hub_; }
  [[nodiscard]] const ChangeFeed& feed() const { return feed_; }
  [[nodiscard]] StatusEntry status() const;

 private:
  struct Waiting {
    OutboxChange change = {};
    std::uint64_t first = 0;  // generations of the changes that are not read
    std::uint64_t last = 0;
  };
  struct CatchUp;
  using Batch = std::vector<std::pair<std::int64_t, Waiting>>;
  using SharedRows = std::vector<std::shared_ptr<const LiveRow>>;

  void take_changes(std::vector<OutboxChange> changes, const ChangeCursor& cursor);
  void take_missed(const ChangeCursor& cursor);
  Task<> read_objects();
  [[nodiscard]] std::map<std::int64_t, Batch> due_objects(Clock::time_point now) const;
  Task<bool> read_batch(std::int64_t account, Batch batch);
  void settle();
  Task<> read_runtimes();
  Task<> compare_runtimes(std::int64_t account);
  Task<Result<CatchUp>> catch_up(CallerPtr caller, LiveTopics topics, std::string cursor,
                                 Deadline deadline);

  store::Database& database_;
  Options options_;
  Executor executor_;
  LiveHub hub_;
  std::map<std::int64_t, Waiting> waiting_;            // by object
  std::map<std::int64_t, Clock::time_point> read_at_;  // of objects that were read lately
  // The cursor behind the changes of each generation.
  std::uint64_t generation_ = 0;
  std::deque<std::pair<std::uint64_t, std::string>> cursors_;
  struct Followed {
    Span span;
    Deadline until;
  };
  std::map<std::string, Followed> followed_;                             // by uid
  std::map<std::int64_t, std::map<std::string, LiveRuntime>> runtimes_;  // by account; as told last
  gitops::Event changed_;
  Gauge& subscribers_;
  Counter& rows_;
  Counter& resets_;
  ChangeFeed feed_;
  TaskGroup tasks_;
};

}  // namespace gitops::control_plane_server
