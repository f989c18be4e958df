#include "common/cli/loop_runner.hpp"

#include <csignal>
#include <cstdlib>
#include <optional>

#include <boost/asio/basic_signal_set.hpp>

#include "common/core/log.hpp"
#include "common/core/process.hpp"
#include "common/core/task_group.hpp"
#include "common/core/time.hpp"
#include "common/core/worker_pool.hpp"

namespace gitops::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kDeadlineGrace = seconds(1);  // by which work may exceed its deadline
constexpr milliseconds kCancelGrace = seconds(1);    // for the end of cancelled work
constexpr milliseconds kLookAtOutput = seconds(1);

// Exits without destructors: cancelled work or a blocked thread may still use the objects.
[[noreturn]] void end_process(Console& console, int code) {
  console.out.flush();
  console.err.flush();
  gitops::end_process(code);
}

// One run: the work, the signals and the deadline that may end it early. Loop thread only.
class Run {
 public:
  Run(const LoopOptions& options, Console& console,
      std::function<Task<int>(const LoopContext&)> work)
      : options_(options), console_(console), work_(std::move(work)) {}

  int run() {
    asio::co_spawn(
        loop_.get_executor(), [this] { return live(); },
        [](const std::exception_ptr& failure) {
          if (failure) std::rethrow_exception(failure);
        });
    loop_.run();
    const int code = code_.value_or(kFailed);
    if (WorkerPool::left_behind() > 0) end_process(console_, code);
    return code;
  }

 private:
  Task<> live() {
    TaskGroup tasks(loop_.get_executor(), [this](const std::string&, const std::string& what) {
      console_.err << "failed unexpectedly: " << what << '\n';
      end_with(kFailed);
    });
    const LoopContext context{.executor = loop_.get_executor(),
                              .metrics = metrics_,
                              .deadline = deadline_after(options_.timeout)};
    asio::basic_signal_set<Executor> signals(loop_.get_executor(), SIGINT, SIGTERM);
    tasks.spawn("signals", [this, &signals]() -> Task<> {
      const int number = co_await signals.async_wait(use_task);
      end_with(number == SIGINT ? kInterrupted : kTerminated);
    });
    tasks.spawn("output", [this]() -> Task<> {
      // Ends a watch, for example, whose output nobody reads any more.
      while (console_.out) co_await sleep_for(kLookAtOutput);
      end_with(kFailed);
    });
    tasks.spawn("work", [this, &context]() -> Task<> { end_with(co_await work_(context)); });
    const Deadline latest = context.deadline == kNever ? kNever : context.deadline + kDeadlineGrace;
    while (!code_ && co_await changed_.wait(latest)) {
    }
    if (!code_) {
      console_.err << "not done within " << format_duration(options_.timeout)
                   << "; --timeout gives it more time\n";
      code_ = kNotKnown;
    }
    tasks.cancel();
    TaskGroup watchdog(loop_.get_executor());
    watchdog.spawn("watchdog", [this]() -> Task<> {
      co_await sleep_for(kCancelGrace);
      end_process(console_, *code_);
    });
    co_await tasks.join();
    watchdog.cancel();
    co_await watchdog.join();
  }

  // The first call decides the exit code.
  void end_with(int code) {
    if (!code_) code_ = code;
    changed_.notify_all();
  }

  const LoopOptions& options_;
  Console& console_;
  std::function<Task<int>(const LoopContext&)> work_;
  Loop loop_{1};
  Metrics metrics_;
  Event changed_{loop_.get_executor()};
  std::optional<int> code_;
};

}  // namespace

void LoopOptions::add_to(ConfigReader& reader) {
  reader.group("Run");
  reader.add({.flag = "timeout", .help = "Time limit for the whole command"}, timeout,
             milliseconds(1), std::chrono::hours(24));
  reader.add({.flag = "verbose", .help = "Write log lines to standard error", .letter = 'v'},
             verbose);
}

int run_on_loop(const LoopOptions& options, Console& console,
                std::function<Task<int>(const LoopContext&)> work) {
  configure_logging(options.verbose ? LogLevel::debug : LogLevel::off, LogFormat::text);
  return Run(options, console, std::move(work)).run();
}

}  // namespace gitops::cli
