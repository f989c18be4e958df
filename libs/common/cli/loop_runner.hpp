#pragma once

#include <chrono>
#include <functional>

#include "common/cli/command.hpp"
#include "common/core/async.hpp"
#include "common/core/metrics.hpp"

namespace gitops::cli {

// Settings of every command that waits for something.
struct LoopOptions {
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  bool verbose = false;
  // Adds --timeout and -v, --verbose.
  void add_to(ConfigReader& reader);
};

// What run_on_loop gives the work. Everything in it outlives the work.
struct LoopContext {
  Executor executor;
  Metrics& metrics;   // which Resolvers and WorkerPools want; nobody reads them
  Deadline deadline;  // now plus the timeout; to be passed to every call that can wait
};

// Runs one coroutine on a loop of this thread, without an admin port, and returns the exit code
// that it ended with. Log lines are written to standard error, and only with --verbose.
//
// Work that is still there a second after its deadline is cancelled: kNotKnown. SIGINT and SIGTERM
// cancel it at once: kInterrupted, kTerminated. What ignores its cancellation for a second, or
// blocks a thread of a WorkerPool, ends with the process. An exception that escapes is a bug: it is
// named on `console.err`, kFailed.
int run_on_loop(const LoopOptions& options, Console& console,
                std::function<Task<int>(const LoopContext&)> work);

}  // namespace gitops::cli
