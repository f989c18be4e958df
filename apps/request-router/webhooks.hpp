#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/http/message.hpp"
#include "common/proxy/policy.hpp"
#include "request-router/webhook_journal.hpp"
#include "request-router/webhook_store.hpp"

namespace gitops::router {

struct WebhookRoute;

// Stores webhooks that their event source does not accept now and delivers them later
// (WebhookStore), so that a Git host that sends each webhook once loses none. With a journal folder
// they survive the process.
//
// All loops share one object. must_wait(), keep(), size(), page() and redeliver() are for any thread; everything
// else is for the loop of the constructor, which outlives the other loops.
class Webhooks {
 public:
  struct Options {
    std::filesystem::path journal_folder = {};  // empty: memory only
    WebhookStore::Limits limits = {};
    // Time limits of a sender: for room, and then for the response of the event source.
    std::chrono::milliseconds room_timeout{30'000};
    std::chrono::milliseconds answer_wait{5'000};
  };
  // `metrics` must outlive it.
  Webhooks(const Executor& executor, Metrics& metrics, Options options);

  // Returns the route to an event source from the routes in force. Called on the loop.
  using RouteOf = std::function<Result<std::shared_ptr<const WebhookRoute>>(const SourceName&)>;
  // Takes over the webhooks in the journals and begins to deliver. Blocks while it reads them.
  Result<void> start(RouteOf route_of);
  // Continues to deliver until no webhook is left, all remaining event sources are unreachable, or
  // the deadline has passed.
  Task<> stop(Deadline deadline);

  // Returns whether a webhook must be stored without an attempt to deliver it.
  [[nodiscard]] bool must_wait(const SourceName& source) const;
  // Stores a webhook whose signature and limits were checked, and returns the response to its
  // sender: that of the event source if it comes in time, otherwise 202; 503 if there was no room.
  // `failure`: reason of the failed delivery; empty without an attempt.
  Task<http::Response> keep(SourceName source, const proxy::WholeRequest& request,
                            std::string failure);

  [[nodiscard]] std::size_t size() const { return size_; }
  // Stored webhooks and recent losses, as JSON.
  [[nodiscard]] std::string page() const;
  // Makes the next attempt of event sources due now (WebhookStore::hasten), and returns the outcome of each as JSON.
  // `event_source` is NAMESPACE/NAME or NAME; empty: all.
  std::string redeliver(std::string_view event_source);
  // Updates the gauges.
  void count();

 private:
  struct Sender;
  struct Attempt;
  struct Lost {
    WallTime at{};
    SourceName source;
    std::string request_id;
    std::string reason;
  };

  Task<bool> take_room(std::shared_ptr<Sender> sender);
  Task<> deliver_all();
  std::shared_ptr<Attempt> next_attempt(Clock::time_point& due);
  Task<> deliver(std::shared_ptr<Attempt> attempt);
  void settle(const Attempt& attempt, const Result<http::Response>& answer);
  void drop_expired(Clock::time_point now);
  std::optional<std::vector<Kept>> recover(std::vector<RecoveredWebhook> found);
  [[nodiscard]] bool may_deliver_more() const;
  void wake();
  // Need the locked mutex.
  void kept(const std::shared_ptr<Sender>& sender);
  void gone(const Kept& webhook);
  Counter& lost_total(std::string_view reason);
  void lost(const KeptWebhook& webhook, std::string_view reason);
  void offer_room();

  const Executor executor_;
  Metrics& metrics_;
  const Options options_;
  Counter& kept_total_;
  Counter& delivered_total_;
  Gauge& kept_now_;
  Gauge& kept_bytes_;
  Gauge& oldest_seconds_;
  RouteOf route_of_;
  std::atomic<std::uint64_t> last_id_ = 0;
  std::atomic<std::size_t> size_ = 0;  // number of webhooks in store_

  mutable std::mutex mutex_;
  WebhookStore store_;
  std::list<std::shared_ptr<Sender>> waiting_;                        // for room, oldest first
  std::unordered_map<std::uint64_t, std::weak_ptr<Sender>> senders_;  // waiting for a response
  std::deque<Lost> lost_;
  RepeatFilter reports_{std::chrono::minutes(1)};

  std::size_t attempts_ = 0;  // in flight
  const std::shared_ptr<Event> changed_;
  TaskGroup tasks_;
  std::unique_ptr<WebhookJournal> journal_;  // null without a folder
};

}  // namespace gitops::router
