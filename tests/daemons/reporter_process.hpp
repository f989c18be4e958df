#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "support/process.hpp"

namespace gitops::test {

// The real event-reporter as a child process, with everything it writes in a file. Its ports are
// read from its log, so they may be 0. Main thread; the waits do not hold up the loop and give up,
// with false, after `patience`.
class ReporterProcess {
 public:
  // A command line for our build of the program with free ports on 127.0.0.1, and more flags.
  static std::vector<std::string> command(std::vector<std::string> flags);

  // argv[0] is the program's path. The environment is on top of this process's own.
  ReporterProcess(std::vector<std::string> argv, Environment environment,
                  Clock::duration patience = std::chrono::seconds(20));

  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }
  // For a test that failed: the log, and the last answer of /readyz.
  [[nodiscard]] std::string report() const { return log() + readyz_; }

  // Waits until the log holds `part` that often.
  Task<bool> wait_for_log(std::string part, std::size_t times = 1);
  // Waits until /readyz says so: "ready" or a part of the reason why not.
  Task<bool> wait_for_readyz(std::string part);
  [[nodiscard]] const std::string& last_readyz() const { return readyz_; }

  // Waits until it listens.
  Task<bool> started();
  // The admin port's answer; wait for started() before.
  [[nodiscard]] HttpReply get(const std::string& path) const;
  // The main port's answer.
  [[nodiscard]] HttpReply get_main(const std::string& path) const;

  [[nodiscard]] std::string command_line() const;
  // Ends it in order, while what is around it goes on; its exit code, -1 when it does not end.
  Task<int> stop();
  Process& process() { return process_; }

 private:
  Task<bool> until(std::function<bool()> condition) const;
  [[nodiscard]] std::string number_in_log(const std::string& key) const;

  TempDir folder_;
  Clock::duration patience_;
  std::string admin_port_;
  std::string readyz_;
  Process process_;
};

}  // namespace gitops::test
