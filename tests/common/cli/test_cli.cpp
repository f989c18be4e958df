// A command-line program whose commands end, hang and fail on request.

#include <stdexcept>

#include <unistd.h>

#include "common/cli/command.hpp"
#include "common/cli/loop_runner.hpp"
#include "common/core/log.hpp"
#include "common/core/worker_pool.hpp"

namespace {

using gitops::Task;
using gitops::cli::Command;
using gitops::cli::Console;
using gitops::cli::Environment;
using gitops::cli::LoopContext;
using gitops::cli::LoopOptions;

Command command(std::string name, std::function<Task<int>(const LoopContext&, Console&)> work) {
  static LoopOptions options;
  return {.name = std::move(name),
          .summary = "Does nothing",
          .bind = [](gitops::ConfigReader& reader) { options.add_to(reader); },
          .run =
              [work = std::move(work)](const Environment&, Console& console) {
                return run_on_loop(options, console, [&](const LoopContext& context) {
                  return work(context, console);
                });
              }};
}

Task<int> wait_for_ever(const LoopContext&, Console& console) {
  console.out << "waiting" << std::endl;
  co_await gitops::sleep_until(gitops::kNever);
  co_return 0;
}

Task<int> ignore_cancellation(const LoopContext&, Console& console) {
  console.out << "waiting" << std::endl;
  while (true) {
    bool cancelled = false;
    try {
      co_await gitops::sleep_for(std::chrono::milliseconds(1));
    } catch (const std::exception&) {
      cancelled = true;
    }
    if (cancelled) co_await boost::asio::this_coro::reset_cancellation_state();
  }
}

Task<int> block_the_pool(const LoopContext& context, Console& console) {
  gitops::WorkerPool pool({.name = "test"}, context.metrics);
  (void)pool.submit({}, [](const std::stop_token&) { ::pause(); });
  while (!context.metrics.expose().contains(R"(gitops_worker_pool_busy_threads{pool="test"} 1)")) {
    co_await gitops::sleep_for(std::chrono::milliseconds(1));
  }
  console.out << "not waiting" << std::endl;
  co_return 7;
}

Task<int> keep_to_the_deadline(const LoopContext& context, Console& console) {
  co_await gitops::sleep_until(context.deadline);
  console.out << "in time" << std::endl;
  co_return gitops::cli::kNotKnown;
}

Task<int> write_lines(const LoopContext&, Console& console) {
  while (true) {
    console.out << "a line" << std::endl;
    co_await gitops::sleep_for(std::chrono::milliseconds(10));
  }
}

Task<int> write_a_log_line(const LoopContext&, Console&) {
  gitops::Log("test").error("a log line");
  co_return 0;
}

Task<int> fail_badly(const LoopContext&, Console&) {
  co_await gitops::sleep_for(std::chrono::milliseconds(1));
  throw std::runtime_error("a bug");
}

}  // namespace

int main(int argc, char** argv) {
  return gitops::cli::run_main(
      {.name = "test-cli",
       .summary = "Does nothing, in several ways",
       .commands = {command("wait", wait_for_ever), command("ignore", ignore_cancellation),
                    command("block", block_the_pool), command("deadline", keep_to_the_deadline),
                    command("log", write_a_log_line), command("bug", fail_badly),
                    command("lines", write_lines)}},
      argc, argv);
}
