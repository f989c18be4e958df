#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/core/time.hpp"

namespace gitops::router {

// Event source, by the two names in a webhook's target.
struct SourceName {
  std::string ns;
  std::string event_source;
  auto operator<=>(const SourceName&) const = default;
};

// Stored webhook that is not delivered yet.
struct KeptWebhook {
  std::uint64_t id = 0;  // within this process
  SourceName source;
  std::string request_id;
  std::string bytes;  // the request to send: its head and its body
  Clock::time_point since{};
};
using Kept = std::shared_ptr<const KeptWebhook>;

// Store of undelivered webhooks, which schedules their delivery. Limited in bytes and in age. Pure:
// the caller delivers and reports the outcome; time is an argument. Not thread-safe.
//
// Event sources take turns. A single source may use nearly all of the room; the more sources have
// webhooks, the less each may use, so that room is left for a new source. So it is with attempts: a
// single slow source may use half of them. While a source is
// unreachable, one webhook at a time is retried, with growing backoff. A webhook that a reachable
// source refuses has its own backoff and does not delay others. So does one that gets no response,
// because the webhook itself may be the reason: one at which the source crashes, or waits too long.
class WebhookStore {
 public:
  struct Limits {
    std::size_t bytes = 64 * 1024 * 1024;
    Clock::duration age = std::chrono::hours(1);
    std::size_t attempts = 256;  // concurrent, of all event sources together
  };
  explicit WebhookStore(Limits limits) : limits_(limits) {}

  // Adds a webhook. Returns false if there is no room.
  bool add(Kept webhook);
  // Returns whether a new webhook must be stored without an attempt, because the source is
  // unreachable or other webhooks of it are waiting.
  [[nodiscard]] bool must_wait(const SourceName& source) const;
  [[nodiscard]] bool is_reachable(const SourceName& source) const;
  // Records that the caller found a source unreachable.
  void unreachable(const SourceName& source, std::string_view why, Clock::time_point now);

  // Returns whether a webhook of this source may be delivered now, for example because its gate has
  // a permit. Called once for each source with a due webhook; true is final.
  using Enter = std::function<bool(const SourceName&)>;
  // Returns the next webhook to try; null if none is due. It is in flight until an outcome is
  // reported.
  Kept next(Clock::time_point now, const Enter& enter);
  // Time of the next call of next() if nothing happens before. Sources that `enter` refused are
  // tried again after kGateInterval.
  [[nodiscard]] Clock::time_point due(Clock::time_point now) const;
  static constexpr auto kGateInterval = std::chrono::milliseconds(50);

  enum class Hastened : std::uint8_t {
    now,          // the next call of next() may return a webhook of the source
    too_soon,     // within kHastenInterval of the last time
    not_waiting,  // no webhook of the source waits for a later attempt
  };
  // Makes the next attempt of a source due now: one webhook is tried, and the others that wait for a later attempt
  // follow when it is delivered. Changes nothing but times.
  Hastened hasten(const SourceName& name, Clock::time_point now);
  static constexpr auto kHastenInterval = std::chrono::seconds(1);

  // -- outcomes of an attempt --
  void delivered(std::uint64_t id);
  // Reports that the source could not be connected to.
  void unreachable(std::uint64_t id, std::string_view why, Clock::time_point now);
  // Reports that a connection to the source ended, or timed out, without a response.
  void unanswered(std::uint64_t id, std::string_view why, Clock::time_point now);
  // Reports that the source responded without accepting this webhook.
  void refused(std::uint64_t id, std::string_view why, Clock::time_point now);
  // Number of attempts that the source refused.
  [[nodiscard]] unsigned refusals(std::uint64_t id) const;

  void drop(std::uint64_t id);
  // Removes webhooks above the age limit and returns them.
  std::vector<Kept> expire(Clock::time_point now);
  // Removes and returns all webhooks.
  std::vector<Kept> clear();

  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::optional<Clock::time_point> oldest() const;
  struct SourceState {
    SourceName name;
    std::size_t webhooks = 0;
    std::size_t bytes = 0;
    bool is_reachable = true;
    std::string last_error;
  };
  [[nodiscard]] std::vector<SourceState> sources() const;

 private:
  struct Source {
    explicit Source(SourceName n) : name(std::move(n)) {}
    SourceName name;
    std::size_t webhooks = 0;
    std::size_t bytes = 0;
    std::size_t under_way = 0;
    std::deque<std::uint64_t> ready;                        // ids; some may be removed
    std::multimap<Clock::time_point, std::uint64_t> later;  // ids; some may be removed
    unsigned failures = 0;                                  // since the last reachable attempt
    Clock::time_point paused_until{};
    Clock::time_point may_hasten_at{};
    std::uint64_t hastened = 0;  // id of a refused webhook that hasten() made due; 0: none
    std::string last_error;
  };
  struct Item {
    Kept webhook;
    Source* source = nullptr;
    bool is_under_way = false;
    unsigned refusals = 0;
    unsigned unanswered = 0;  // attempts without a response
  };

  Source& source_of(const SourceName& name);
  [[nodiscard]] const Source* find(const SourceName& name) const;
  void take_due(Source& source, Clock::time_point now);
  // Makes the first webhook of `later` ready; returns its id, 0 when there is none.
  std::uint64_t take_first_later(Source& source);
  [[nodiscard]] bool may_try(const Source& source, Clock::time_point now) const;
  // Returns the maximum number of concurrent attempts of one source.
  [[nodiscard]] std::size_t attempts_of_one() const;
  Item* back_from(std::uint64_t id);
  void fail(Source& source, std::string_view why, Clock::time_point now);
  Kept forget(std::unordered_map<std::uint64_t, Item>::iterator item);
  void forget_unused_sources();

  Limits limits_;
  std::size_t bytes_ = 0;
  std::unordered_map<std::uint64_t, Item> items_;
  std::set<std::pair<Clock::time_point, std::uint64_t>> ages_;  // of all webhooks
  std::list<Source> sources_;                                   // next turn first
};

}  // namespace gitops::router
