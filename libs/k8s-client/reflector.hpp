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

// Returns true when both versions are numbers and the first one is smaller. Versions are opaque to
// clients, so this may only serve to ignore data that is certainly stale.
bool is_older_version(std::string_view version, std::string_view than);

// The state machine of a live copy of one resource type, without I/O: it takes events and returns
// the next action. It behaves as the reflector of client-go (tools/cache/reflector.go):
//
// - A copy begins with a list. The first choice is a streaming list: a watch that sends the objects
//   first (KEP-3157). A server that refuses it (400, 422) gets paged lists from then on. A server
//   that accepts it and does not end it in time by its bookmark, or ends it twice in a row without,
//   in order or by an error, gets a paged list now; the next list is a streaming one again.
// - Paged lists request no version, which means the newest state. Version "0" would be served from
//   the watch cache, as a whole and regardless of the limit: 10,000 applications are 86 MB.
// - A page that exceeds our size limit is requested again with half the number of objects; each
//   complete list doubles that number, up to the configured one. A page that fails with a transient
//   error is requested again, after a timeout with half the number of objects, but not below 50.
//   When the rest of the pages is gone (410), the list was slower than the server's compaction: one
//   list without pages follows. Any other failure, and a timeout without pages, restarts the list.
// - Watches resume from the last version seen, bookmarks included, with a random timeout of 5 to 10
//   minutes.
// - Before a watch resumes, and before the next list, a check requests the server's newest version
//   (a list of one object without a version, which etcd serves by quorum). A server that was
//   restored from a backup is behind the version seen here. It does not refuse a watch from that
//   version but sends nothing until it gets there. So the copy is listed again, and a new epoch
//   begins. A server that is already past that version cannot be distinguished from one that was
//   not restored, unless the restore bumped the revision and marked older ones as compacted
//   (https://etcd.io/docs/v3.6/op-guide/recovery/): then the watch gets 410.
// - A list that holds an older version of an object than the one known shows a restore, too: a list
//   is never older than the watch before it. A new epoch begins with that object.
// - A watch that ends cleanly is reopened at once, unless it lived for less than 1 s without news.
//   Failures back off with full jitter, for at least Retry-After. The backoff is reset after a
//   watch that was healthy for 2 minutes or brought news: an object's event with a version other
//   than the last one. Bookmarks and the events of a list are not news.
// - 410 (as status or as an ERROR event) and the cause ResourceVersionTooLarge lead to a list. The
//   second of these without news in between, and every later one, backs off.
// - Versions are compared as numbers in two places only: to ignore a bookmark that went back, and
//   in the check. A version that is not a number passes both.
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
    enum class Kind {
      wait,
      check,  // request the server's newest version: a list of one object, without a version
      list,
      watch,
    } kind = Kind::wait;
    std::chrono::milliseconds delay{0};  // wait
    std::string continue_token;          // list: empty for the first page
    std::size_t limit = 0;               // list: objects per page; 0: no pages
    std::string resource_version;        // watch
    std::chrono::seconds timeout{0};     // watch: the server ends it then
    bool send_initial_events = false;    // watch: as a streaming list

    // Returns true for the action that begins a list: objects of earlier, incomplete lists do not
    // count.
    [[nodiscard]] bool begins_list() const {
      return send_initial_events || (kind == Kind::list && continue_token.empty());
    }
  };
  // Returns the next action. Its outcome is reported by one of the functions below, except that of
  // `wait`.
  Action next();
  // The reason for the last list: "start", "gone", "restored", "streaming_refused" (for good),
  // "streaming_failed" (this time) or "failed".
  [[nodiscard]] std::string_view list_reason() const { return list_reason_; }

  // Takes the response to a check: the resourceVersion of the list.
  void on_server_version(const std::string& resource_version);
  void on_check_error(const Error& error);
  // Reports that the list in progress holds an older version of an object than the known one.
  void on_older_object() { ++epoch_; }
  // Takes a page. Returns true when it was the last one: the list is complete.
  bool on_list_page(const std::string& resource_version, std::string continue_token);
  void on_list_error(const Error& error);
  // Reports that the server accepted the watch.
  void on_watch_open(Clock::time_point now);
  // Takes an event of an object, whether kept, dropped or quarantined.
  void on_event(const std::string& resource_version);
  void on_bookmark(const std::string& resource_version);
  // Takes the bookmark that ends a streaming list: the list is complete.
  void on_initial_events_end(const std::string& resource_version);
  // Reports that the watch could not be opened or has ended; null when the server ended it in
  // order.
  void on_watch_end(const Error* error, Clock::time_point now);

  // Returns true from a complete list until another one is needed.
  [[nodiscard]] bool synced() const { return phase_ == Phase::watch; }
  // Returns true while a streaming list is in progress: events are its content.
  [[nodiscard]] bool in_streaming_list() const { return in_streaming_list_; }
  [[nodiscard]] const std::string& resource_version() const { return resource_version_; }
  // Number of detected restores of the server from a backup. Versions of different epochs cannot be
  // compared, and the same version may mean another state.
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  // Returns whether the server sends bookmarks, about one a minute, so that silence indicates a
  // broken connection.
  [[nodiscard]] bool has_seen_bookmark() const { return has_seen_bookmark_; }

 private:
  void back_off(std::chrono::milliseconds floor = {}) { wait_ = backoff_.next(floor); }
  void need_list(std::string_view reason);
  void list_in_pages(std::string_view reason);
  void complete_list(const std::string& version);
  void on_gone();
  void on_streaming_list_end(const Error* error);
  [[nodiscard]] bool streams() const { return options_.streaming_list && !pages_this_time_; }

  Options options_;
  Backoff backoff_;
  std::minstd_rand random_;
  enum class Phase { list, watch } phase_ = Phase::list;
  std::optional<std::chrono::milliseconds> wait_;  // before the next action
  std::string resource_version_;                   // the last one seen; watches start from it
  bool unverified_ = false;  // check the server's version before anything else
  std::uint64_t epoch_ = 0;
  bool has_seen_bookmark_ = false;

  std::string_view list_reason_ = "start";
  bool pages_this_time_ = false;
  bool unpaged_ = false;  // this list is taken without pages
  std::size_t page_limit_;
  std::string continue_token_;
  std::string list_version_;           // of the first page, so that no later change is missed
  unsigned unfinished_streaming_ = 0;  // streaming lists in a row that ended without their bookmark
  unsigned gone_in_a_row_ = 0;         // without news in between

  bool in_streaming_list_ = false;
  std::optional<Clock::time_point> opened_at_;  // time at which this watch opened
  bool news_ = false;                           // in this watch
};

}  // namespace gitops::k8s
