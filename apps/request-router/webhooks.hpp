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

// Keeps the webhooks that their event source does not take now, so that a Git host that sends each
// only once loses nothing, and delivers them when it takes them (WebhookStore). With a folder for the
// journal they survive the process.
//
// All loops share one. must_wait(), keep(), size(), page() are for any thread, everything else for the loop that
// it was made with, which outlives the other loops.
class Webhooks {
 public:
  struct Options {
    std::filesystem::path journal_folder = {};  // empty: in memory only
    WebhookStore::Limits limits = {};
    // How long a sender waits for room, and then for the answer of the event source.
    std::chrono::milliseconds room_timeout{30'000};
    std::chrono::milliseconds answer_wait{5'000};
  };
  // `metrics` outlives it.
  Webhooks(const Executor& executor, Metrics& metrics, Options options);

  // The way to an event source as the routes in force have it. On the loop.
  using RouteOf = std::function<Result<std::shared_ptr<const WebhookRoute>>(const SourceName&)>;
  // Takes over what the journals hold, and begins to deliver. Blocks for as long as that takes to read.
  Result<void> start(RouteOf route_of);
  // Goes on delivering until all is delivered, no event source that is left can be reached, or the
  // deadline has passed.
  Task<> stop(Deadline deadline);

  // Whether a webhook is to be kept without an attempt to deliver it.
  [[nodiscard]] bool must_wait(const SourceName& source) const;
  // Keeps a webhook whose signature and limits were checked, and returns what its sender is told: the
  // answer of the event source if that comes soon, 202 when it does not, 503 when there was no room.
  // `failure`: why it could not be delivered; empty when nothing was tried.
  Task<http::Response> keep(SourceName source, const proxy::WholeRequest& request,
                            std::string failure);

  [[nodiscard]] std::size_t size() const { return size_; }
  // What is kept, and what was lost lately: JSON.
  [[nodiscard]] std::string page() const;
  // Brings the gauges up to date.
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
  void settle(const Kept& webhook, const Result<http::Response>& answer);
  void drop_expired(Clock::time_point now);
  std::optional<std::vector<Kept>> recover(std::vector<RecoveredWebhook> found);
  [[nodiscard]] bool may_deliver_more() const;
  void wake();
  // The mutex is locked.
  void kept(const std::shared_ptr<Sender>& sender);
  void gone(const Kept& webhook);
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
  std::atomic<std::size_t> size_ = 0;  // of store_

  mutable std::mutex mutex_;
  WebhookStore store_;
  std::list<std::shared_ptr<Sender>> waiting_;                        // for room, oldest first
  std::unordered_map<std::uint64_t, std::weak_ptr<Sender>> senders_;  // that wait for an answer
  std::deque<Lost> lost_;
  RepeatFilter reports_{std::chrono::minutes(1)};

  std::size_t attempts_ = 0;  // under way
  const std::shared_ptr<Event> changed_;
  TaskGroup tasks_;
  std::unique_ptr<WebhookJournal> journal_;  // null: none
};

}  // namespace gitops::router
