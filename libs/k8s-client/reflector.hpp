#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "common/core/backoff.hpp"
#include "common/core/error.hpp"
#include "common/core/time.hpp"

namespace gitops::k8s {

// True when both versions are numbers and the first is the smaller one. Versions are opaque to
// clients, so this may only serve to ignore what is certainly stale.
bool is_older_version(std::string_view version, std::string_view than);

// The list/watch state machine of client-go's reflector, without I/O: told what happened, it says
// what to do next. Rules (client-go tools/cache/reflector.go is the model for behaviour):
//
// - Starts with a streaming list when allowed. A server that refuses it (400, 422), that sends
//   nothing in time once it has accepted it, or that twice in a row ends it without its bookmark,
//   gets paged lists for the rest of the process.
// - Lists ask for no version (the newest state). Not for version "0": servers with a watch cache
//   answer that whole, whatever the limit, and 10,000 applications are 86 MB.
// - A page that is too large for us is asked for again with half the limit. A page that fails for a
//   passing reason is asked for again, any other failure starts the list from the beginning.
// - Watches resume from the last version seen, bookmarks included, with a random timeout of 5-10
// min.
// - A watch that ends cleanly is re-opened at once, unless it lived less than 1 s without news:
// then
//   with backoff. Failures back off with full jitter, at least Retry-After; backoff resets after a
//   watch has been healthy for 2 minutes or brought news, that is an object's event with another
//   version than the one we had. Bookmarks and the events of a list are no news.
// - 410 (as status or as an ERROR event), or a version that the server says is ahead of its own
//   (restored from a backup): re-list. The second such answer without news in between, and every
//   later one, backs off.
// - A version is kept as text and never compared as a number, except to notice one that went back
// in
//   bookmarks, which is ignored.
class Reflector {
 public:
  struct Options {
    bool streaming_list = true;
    std::size_t page_limit = 500;
    Backoff::Options backoff{};
    std::chrono::seconds watch_timeout_min{300};
    std::chrono::seconds watch_timeout_max{600};
  };
  Reflector(Options options, std::uint64_t seed);

  struct Action {
    enum class Kind { wait, list, watch } kind = Kind::wait;
    std::chrono::milliseconds delay{0};  // wait
    std::string continue_token;          // list: empty for the first page
    std::size_t limit = 0;               // list: objects per page
    std::string resource_version;        // watch
    std::chrono::seconds timeout{0};     // watch: the server ends it then
    bool send_initial_events = false;    // watch: as a streaming list

    // A list begins here: what earlier, incomplete ones brought does not count.
    [[nodiscard]] bool begins_list() const {
      return send_initial_events || (kind == Kind::list && continue_token.empty());
    }
  };
  // What to do now, to be answered by one of the functions below; after `wait` just call it again.
  Action next();
  // Why there is a list: "start", "gone", "streaming_refused" or "failed".
  [[nodiscard]] std::string_view list_reason() const { return list_reason_; }

  // A page arrived. True when it was the last: the list is complete.
  bool on_list_page(const std::string& resource_version, std::string continue_token);
  void on_list_error(const Error& error);
  // The watch was accepted (its head arrived).
  void on_watch_open(Clock::time_point now);
  // An event about an object, whether it was used, dropped or quarantined.
  void on_event(const std::string& resource_version);
  void on_bookmark(const std::string& resource_version);
  // The bookmark that ends a streaming list: the list is complete.
  void on_initial_events_end(const std::string& resource_version);
  // The watch could not be opened or has ended: without error when the server closed it.
  void on_watch_end(const Error* error, Clock::time_point now);

  // True from a complete list until the next one is needed.
  [[nodiscard]] bool synced() const { return phase_ == Phase::watch; }
  // A streaming list is under way: events are its content until its end.
  [[nodiscard]] bool in_streaming_list() const { return in_streaming_list_; }
  [[nodiscard]] const std::string& resource_version() const { return resource_version_; }

 private:
  void back_off(std::chrono::milliseconds floor = {}) { wait_ = backoff_.next(floor); }
  void need_list(std::string_view reason);
  void refuse_streaming();
  void on_gone();
  void on_streaming_list_end(const Error* error);

  Options options_;
  Backoff backoff_;
  std::minstd_rand random_;
  enum class Phase { list, watch } phase_ = Phase::list;
  std::optional<std::chrono::milliseconds> wait_;  // before whatever is next
  std::string resource_version_;                   // to watch from

  std::string_view list_reason_ = "start";
  std::string continue_token_;
  std::string list_version_;           // of the first page: nothing after it is missed
  unsigned unfinished_streaming_ = 0;  // streaming lists in a row that ended without their bookmark
  unsigned gone_in_a_row_ = 0;         // without news in between

  bool in_streaming_list_ = false;
  std::optional<Clock::time_point> opened_at_;  // of this watch
  bool news_ = false;                           // in this watch
};

}  // namespace gitops::k8s
