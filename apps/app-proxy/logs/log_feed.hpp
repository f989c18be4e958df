#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app-proxy/logs/log_lines.hpp"
#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"

namespace gitops::app_proxy {

// An open stream of a server.
struct LogSource {
  http::ClientExchange exchange;
  LogFormat format = LogFormat::kubernetes;
  // The head of the response must still be read: argocd-server and argo-server send it with the
  // first line.
  bool needs_head = false;
  std::string pod = {};  // set when the lines do not name it
  std::string container = {};
};

// Next event of a feed. `error`: one of the streams failed; the others continue.
struct LogEvent {
  enum class Kind { line, error, end, nothing_yet } kind = Kind::end;
  LogLine line = {};
  std::string error = {};
};

// Merges the lines of one or more streams, in the order of arrival. Reads at most one piece (16
// KiB) of each stream ahead, and returns one piece at a time, so a reader that does not call next()
// slows down the servers. Memory of a stream: that piece, and a line of at most 64 KiB of text or 1
// MiB of JSON. Loop thread only.
class LogFeed {
 public:
  struct Options {
    LogFilter filter = {};
    // Called at intervals before lines are returned; an error ends the feed. Unset: no check.
    std::function<Result<void>()> is_allowed = {};
    std::chrono::milliseconds check_period{30'000};
    // Returned first: errors of streams that could not be opened.
    std::vector<std::string> errors = {};
    // Held for the lifetime of the feed.
    std::shared_ptr<void> slot = {};
  };
  // `ending` outlives the feed: the feed's tasks end there after its destruction.
  LogFeed(TaskGroup& ending, const Executor& executor, std::vector<LogSource> sources,
          Options options);
  ~LogFeed();
  LogFeed(const LogFeed&) = delete;
  LogFeed& operator=(const LogFeed&) = delete;

  // Returns the next event, and waits for it until the deadline. One caller at a time.
  Task<LogEvent> next(Deadline until = kNever);
  // True when next() has an event without waiting.
  [[nodiscard]] bool has_more() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  TaskGroup& ending_;
};

}  // namespace gitops::app_proxy
