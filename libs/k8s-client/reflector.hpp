#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "common/core/backoff.hpp"
#include "common/core/error.hpp"
#include "common/core/time.hpp"

namespace gitops::k8s {

// The list/watch state machine of client-go's reflector, without I/O: told what happened, it says what
// to do next. Rules (client-go tools/cache/reflector.go is the model for behaviour):
//
// - Starts with a streaming list when allowed; a server that refuses it (400, 422, or a watch that
//   sends neither the bookmark nor ends in time) gets paged lists for the rest of the process.
// - First paged list at resourceVersion "0"; after a "gone" during paging or watching the list is
//   repeated without a version (quorum read).
// - Watches resume from the last version seen, bookmarks included, with a random timeout of 5-10 min.
// - A watch that ends cleanly is re-opened at once, unless it lived less than 1 s without an event:
//   then with backoff. Failures back off with full jitter, at least Retry-After; backoff resets after
//   a watch has been healthy for 2 minutes or delivered an event.
// - 410 (as status or as an ERROR event): re-list; consecutive 410s back off.
// - A version is kept as text and never compared as a number, except to notice one that went back in
//   bookmarks, which is ignored.
class Reflector {
 public:
  struct Options {
    bool streaming_list = true;
    Backoff::Options backoff;
    std::chrono::seconds watch_timeout_min{300};
    std::chrono::seconds watch_timeout_max{600};
  };
  Reflector(Options options, std::uint64_t seed);

  struct Action {
    enum class Kind { wait, list, watch } kind = Kind::list;
    std::chrono::milliseconds delay{0};  // wait
    std::string resource_version;        // list, watch
    std::string continue_token;          // list
    std::chrono::seconds timeout{0};     // watch
    bool send_initial_events = false;    // watch
  };
  // What to do now. After `wait` call it again.
  Action next();

  // A page arrived. True when it was the last: the list is complete.
  bool on_list_page(std::string resource_version, std::string continue_token);
  void on_list_error(const Error& error);
  // The watch was accepted (its head arrived).
  void on_watch_open(Clock::time_point now);
  void on_event(const std::string& resource_version, Clock::time_point now);
  // The bookmark that ends a streaming list: the list is complete.
  void on_initial_events_end(const std::string& resource_version, Clock::time_point now);
  // The watch ended: without error when the server closed it.
  void on_watch_end(const Error* error, Clock::time_point now);

  // True from a complete list until the next one is needed.
  [[nodiscard]] bool synced() const;
  [[nodiscard]] const std::string& resource_version() const { return resource_version_; }

 private:
  Options options_;
  Backoff backoff_;
  std::uint64_t random_state_;
  std::string resource_version_;
  std::string continue_token_;
  // (implementation state)
  enum class Phase { list, watch } phase_ = Phase::list;
  bool relist_from_quorum_ = false;
  bool in_initial_events_ = false;
  bool synced_ = false;
  bool wait_first_ = false;
  std::chrono::milliseconds wait_floor_{0};
  Clock::time_point opened_at_{};
  bool event_seen_ = false;
};

}  // namespace gitops::k8s
