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

// An event source, by the two names that a webhook's target has.
struct SourceName {
  std::string ns;
  std::string event_source;
  auto operator<=>(const SourceName&) const = default;
};

// A webhook that an event source is still to get.
struct KeptWebhook {
  std::uint64_t id = 0;  // of this process
  SourceName source;
  std::string request_id;
  std::string bytes;  // the request as it is sent: its head and its body
  Clock::time_point since{};
};
using Kept = std::shared_ptr<const KeptWebhook>;

// The webhooks that are kept, and which of them is to be tried when. Bounded in bytes and in age.
// Pure: somebody else delivers, and tells the outcome; time is passed in. Not thread-safe.
//
// Event sources take turns. One alone may take nearly all of the room; the more sources have webhooks,
// the less each may take, so that room is left for a source that has none yet. While a source cannot
// be reached, one webhook at a time is tried, at growing intervals. A webhook that the source
// itself refuses is tried again on its own, and holds up no other.
class WebhookStore {
 public:
  struct Limits {
    std::size_t bytes = 64 * 1024 * 1024;
    Clock::duration age = std::chrono::hours(1);
  };
  explicit WebhookStore(Limits limits) : limits_(limits) {}

  // False when there is no room.
  bool add(Kept webhook);
  // Whether a webhook that comes now is to be kept without an attempt, because the source cannot be
  // reached or because others of it wait for their turn.
  [[nodiscard]] bool must_wait(const SourceName& source) const;
  [[nodiscard]] bool is_reachable(const SourceName& source) const;
  // Somebody else has found that a source cannot be reached.
  void unreachable(const SourceName& source, std::string_view why, Clock::time_point now);

  // Whether a webhook of this source may be delivered now, for example because the source has a place
  // for it. Asked once for each source that has one due; yes is final.
  using Enter = std::function<bool(const SourceName&)>;
  // The next one to try; null when none is due. It is under way until one of the outcomes is told.
  Kept next(Clock::time_point now, const Enter& enter);
  // When to call next() again, unless something happens before. Sources that `enter` held up are
  // asked again after kGateInterval.
  [[nodiscard]] Clock::time_point due(Clock::time_point now) const;
  static constexpr auto kGateInterval = std::chrono::milliseconds(50);

  // -- the outcome of an attempt --
  void delivered(std::uint64_t id);
  // The source took no connection, or broke it off.
  void unreachable(std::uint64_t id, std::string_view why, Clock::time_point now);
  // The source answered, but did not take this webhook.
  void refused(std::uint64_t id, std::string_view why, Clock::time_point now);
  // Attempts that the source refused.
  [[nodiscard]] unsigned refusals(std::uint64_t id) const;

  void drop(std::uint64_t id);
  // Forgets those that are too old, and returns them.
  std::vector<Kept> expire(Clock::time_point now);
  // Forgets all.
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
    std::deque<std::uint64_t> ready;                        // ids; may name forgotten ones
    std::multimap<Clock::time_point, std::uint64_t> later;  // the same
    unsigned failures = 0;                                  // since it was last reached
    Clock::time_point paused_until{};
    std::string last_error;
  };
  struct Item {
    Kept webhook;
    Source* source = nullptr;
    bool is_under_way = false;
    unsigned refusals = 0;
  };

  Source& source_of(const SourceName& name);
  [[nodiscard]] const Source* find(const SourceName& name) const;
  void take_due(Source& source, Clock::time_point now);
  [[nodiscard]] bool may_try(const Source& source, Clock::time_point now) const;
  Item* back_from(std::uint64_t id);
  void fail(Source& source, std::string_view why, Clock::time_point now);
  Kept forget(std::unordered_map<std::uint64_t, Item>::iterator item);
  void forget_unused_sources();

  Limits limits_;
  std::size_t bytes_ = 0;
  std::unordered_map<std::uint64_t, Item> items_;
  std::set<std::pair<Clock::time_point, std::uint64_t>> ages_;  // of all
  std::list<Source> sources_;                                   // whose turn it is first
};

}  // namespace gitops::router
