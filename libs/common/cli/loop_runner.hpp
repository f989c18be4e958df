#pragma once

#include <chrono>
#include <functional>

#include "common/cli/command.hpp"
#include "common/core/async.hpp"
#include "common/core/metrics.hpp"

namespace gitops::cli {

// Settings of every command that can wait.
struct LoopOptions {
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  bool verbose = false;
  // Adds --timeout and -v, --verbose.
  void add_to(ConfigReader& reader);
};

// Arguments of the work of run_on_loop. They outlive the work.
struct LoopContext {
  Executor executor;
  Metrics& metrics;   // required by Resolvers and WorkerPools; not exported
  Deadline deadline;  // start plus timeout; for every call that can wait
};

// Runs one coroutine on a loop of this thread, without an admin port, and returns the exit code
// that it ended with. Log lines are written to standard error, and only with --verbose.
//
// Work that still runs one second after its deadline is cancelled: kNotKnown. SIGINT and SIGTERM
// cancel it at once: kInterrupted, kTerminated. When work ignores its cancellation for a second, or
// blocks a thread of a WorkerPool, the process exits without it. Work whose output
// cannot be written any more is cancelled: kFailed. An exception that escapes the work
// is a bug: it is written to `console.err`, and the exit code is kFailed.
int run_on_loop(const LoopOptions& options, Console& console,
                std::function<Task<int>(const LoopContext&)> work);

}  // namespace gitops::cli
