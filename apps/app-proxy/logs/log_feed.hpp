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

// A stream of a server that was asked for.
struct LogSource {
  http::ClientExchange exchange;
  LogFormat format = LogFormat::kubernetes;
  // The head of the answer is still to be read: argocd-server and argo-server send it with the first line.
  bool needs_head = false;
  std::string pod = {};  // when the lines do not tell
  std::string container = {};
};

// What comes next of a feed. `error`: one of the streams broke off; the others go on.
struct LogEvent {
  enum class Kind { line, error, end, nothing_yet } kind = Kind::end;
  LogLine line = {};
  std::string error = {};
};

// The lines of one or more streams, in the order in which they come. Reads at most one piece (16 KiB) of each stream
// ahead, and hands out one piece at a time: who does not call next() holds up the servers. Memory of a
// stream: that, and a line of at most 64 KiB of text or 1 MiB of JSON. Loop thread only.
class LogFeed {
 public:
  struct Options {
    LogFilter filter = {};
    // Asked at intervals before lines are handed out; an error is the end. None: always.
    std::function<Result<void>()> is_allowed = {};
    std::chrono::milliseconds check_period{30'000};
    // Handed out first: why streams that were asked for could not be opened.
    std::vector<std::string> errors = {};
    // Kept as long as the feed.
    std::shared_ptr<void> slot = {};
  };
  // `ending` outlives the feed: its tasks end there after the feed has gone.
  LogFeed(TaskGroup& ending, const Executor& executor, std::vector<LogSource> sources,
          Options options);
  ~LogFeed();
  LogFeed(const LogFeed&) = delete;
  LogFeed& operator=(const LogFeed&) = delete;

  // Waits until the deadline. One caller at a time.
  Task<LogEvent> next(Deadline until = kNever);
  // Whether next() has an event at once.
  [[nodiscard]] bool has_more() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  TaskGroup& ending_;
};

}  // namespace gitops::app_proxy
