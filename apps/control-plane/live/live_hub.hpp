#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/http/sse.hpp"
#include "control-plane/accounts/identity.hpp"
#include "control-plane/accounts/visibility.hpp"
#include "control-plane/live/live_row.hpp"

namespace gitops::control_plane_server {

// The topics of a subscriber.
struct LiveTopics {
  bool index = false;  // the Applications of lists
  bool runtimes = false;
  std::vector<std::string> applications = {};  // uids: each with its resources
  bool everything = false;                     // every object: for references, without rows

  [[nodiscard]] bool empty() const {
    return !index && !runtimes && applications.empty() && !everything;
  }
};
// Reads "index,runtimes,app:UID". invalid_argument: an unknown topic, none, or more than 32.
Result<LiveTopics> read_topics(std::string_view text);

// The objects that a caller may see, read again whenever its permissions change.
struct LivePermissions {
  CallerPtr caller;
  Visibility visibility = {};
  std::set<std::string, std::less<>> applications = {};  // those of its topics that are visible
};

// A subscriber: the keys that changed since it was served last. Rows are shared and newer ones replace older ones, so
// a reader that is slow skips states, and its memory is bounded by the number of keys.
class LiveSubscriber {
 public:
  [[nodiscard]] const LiveTopics& topics() const { return topics_; }
  [[nodiscard]] const LivePermissions& permissions() const { return permissions_; }
  // Whether take() would return something.
  [[nodiscard]] bool has_news() const;
  // Whether its credential or permissions have to be checked before it is served again.
  [[nodiscard]] bool needs_check() const { return needs_check_; }

 private:
  friend class LiveHub;
  LiveTopics topics_;
  LivePermissions permissions_;
  std::function<void()> wake_;
  std::map<std::int64_t, std::shared_ptr<const LiveRow>> objects_ = {};
  std::map<std::string, std::shared_ptr<const std::string>> runtimes_ = {};  // members; null: gone
  std::map<std::int64_t, std::string> shown_ = {};  // uids of objects that were sent, by id
  bool needs_check_ = false;
  bool needs_reset_ = false;
  std::optional<Micros> stale_since_ = {};
  bool knows_stale_ = false;
  std::string cursor_ = {};  // everything up to here was sent
};

// Distributes changed rows to subscribers. Without clock, sockets and database; one thread.
class LiveHub {
 public:
  struct Options {
    std::size_t per_user = 16;
    std::size_t whole = 2'000;
    std::size_t max_changed =
        20'000;  // objects of one subscriber; above it, it reads its page again
    std::size_t rows_per_event = 256;
  };
  explicit LiveHub(Options options) : options_(options) {}
  LiveHub() : LiveHub(Options()) {}

  // Adds a subscriber, which is served from begin() on. `wake` is called when there is something new for it.
  // too_many_requests: a limit is reached.
  Result<std::shared_ptr<LiveSubscriber>> add(LiveTopics topics, CallerPtr caller,
                                              std::function<void()> wake);
  // Sets its permissions for the first time. With `cursor` it has everything up to there; else its first event is `reset`.
  void begin(LiveSubscriber& subscriber, LivePermissions permissions,
             std::optional<std::string> cursor);
  // Replaces its permissions. It reads its page again.
  void set_permissions(LiveSubscriber& subscriber, LivePermissions permissions);
  void remove(const std::shared_ptr<LiveSubscriber>& subscriber);

  [[nodiscard]] bool empty() const { return subscribers_.empty(); }
  [[nodiscard]] std::size_t size() const { return subscribers_.size(); }
  // Whether some subscriber may want the row of this object.
  [[nodiscard]] bool wants(const OutboxChange& change) const;
  // The accounts with a subscriber of the topic `runtimes`.
  [[nodiscard]] std::set<std::int64_t> accounts_with_runtimes() const;

  // Gives a row to all subscribers that may see it, or to one.
  void offer(const std::shared_ptr<const LiveRow>& row);
  // The same for one subscriber, with a row that may be older than the one it has.
  void offer_missed(LiveSubscriber& subscriber, const std::shared_ptr<const LiveRow>& row);
  // Gives the row of a runtime, see runtime_members(); a null row is that of a deleted runtime.
  void offer_runtime(std::int64_t account, const std::string& name,
                     const std::shared_ptr<const std::string>& members);
  // Tells that every change up to this cursor was offered.
  void set_cursor(std::string cursor) { cursor_ = std::move(cursor); }
  [[nodiscard]] const std::string& cursor() const { return cursor_; }
  // Makes a subscriber, or all of them, read their pages again.
  void reset(LiveSubscriber& subscriber);
  void reset_all();
  // Makes the subscribers with this account, user or credential be checked; an empty subject means all.
  void check(std::string_view subject);
  // Returns whether a subscriber has to be checked, and takes the mark from it.
  static bool take_check(LiveSubscriber& subscriber);
  // The database cannot be read since then, and it can be read again.
  void set_stale(Micros since);
  void set_fresh();

  // Returns the events for a subscriber since the last call, for text/event-stream.
  std::vector<http::ServerSentEvent> take(LiveSubscriber& subscriber);
  // Returns the changed objects instead, and whether some are missing; for a subscriber of everything.
  struct References {
    std::vector<std::shared_ptr<const LiveRow>> rows = {};
    bool is_reset = false;
  };
  References take_references(LiveSubscriber& subscriber);

 private:
  [[nodiscard]] static bool may_see(const LiveSubscriber& subscriber, const LiveRow& row);
  // Follows whether the Applications of the topics may be seen, since what they own may be seen with them. Returns those
  // that may be seen no more; the page has shown them, also when no row of them came by its stream.
  static std::set<std::string> follow_applications(LiveSubscriber& subscriber);
  void add_objects(LiveSubscriber& subscriber, std::vector<http::ServerSentEvent>& out);
  void add_runtimes(LiveSubscriber& subscriber, std::vector<http::ServerSentEvent>& out);

  Options options_;
  std::vector<std::shared_ptr<LiveSubscriber>> subscribers_;
  std::map<std::string, std::size_t, std::less<>> of_user_;  // counts
  std::optional<Micros> stale_since_;
  std::string cursor_ = "0";
};

}  // namespace gitops::control_plane_server
