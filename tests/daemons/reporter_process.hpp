#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "support/process.hpp"
#include "support/status_page.hpp"

namespace gitops::test {

// The real event-reporter as a child process that writes its output to a file. Its ports are read
// from its log, so they may be 0. Main thread. The waits do not block the loop and return false
// after `time_limit`.
class ReporterProcess {
 public:
  // The command line of the program under test with free ports on 127.0.0.1 and `flags`.
  static std::vector<std::string> command(std::vector<std::string> flags);

  // argv[0] is the program's path. `environment` is added to this process's environment.
  ReporterProcess(std::vector<std::string> argv, Environment environment,
                  Clock::duration time_limit = std::chrono::seconds(20));

  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }
  // For failed tests: the log and the last answer of /readyz.
  [[nodiscard]] std::string report() const { return log() + readyz_; }

  // Waits until the log contains `part` at least `times` times.
  Task<bool> wait_for_log(std::string part, std::size_t times = 1);
  // Waits until /readyz contains `part`: "ready" or part of a reason.
  Task<bool> wait_for_readyz(std::string part);
  [[nodiscard]] const std::string& last_readyz() const { return readyz_; }
  // Waits until the watches have caught up after take-overs of shards; until then the objects that they
  // deliver are read.
  Task<bool> wait_until_caught_up();

  // Waits until the program listens.
  Task<bool> started();
  // The answer of the admin port. Await started() first.
  [[nodiscard]] HttpReply get(const std::string& path) const;
  [[nodiscard]] StatusPage status() const { return StatusPage(get(kStatusPath).body); }
  // Sends a command to the admin port.
  [[nodiscard]] HttpReply post(const std::string& path) const;
  // The answer of the main port.
  [[nodiscard]] HttpReply get_main(const std::string& path) const;

  [[nodiscard]] std::string command_line() const;
  // Sends SIGTERM and waits while the loop goes on. Returns the exit code, -1 after the time limit.
  Task<int> stop();
  Process& process() { return process_; }

 private:
  [[nodiscard]] std::string number_in_log(const std::string& key) const;

  TempDir folder_;
  Clock::duration time_limit_;
  std::string admin_port_;
  std::string readyz_;
  Process process_;
};

}  // namespace gitops::test
