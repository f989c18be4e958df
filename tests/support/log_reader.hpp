#pragma once

#include <string>
#include <vector>

#include "support/process.hpp"

namespace gitops::test {

// The reader of a child's standard error: a process that copies a pipe to the child's log file, and
// that can be stopped. Not thread-safe.
class LogReader {
 public:
  // What runs `argv` with this reader, in ProcessOptions.
  [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& argv) const;
  // Stops the reader; the pipe is full afterwards. The child must be running.
  void stop();
  // The reader goes on: it copies the empty lines that filled the pipe, then what the child writes.
  void go_on();

 private:
  [[nodiscard]] std::string pipe() const { return (folder_ / "pipe").string(); }
  void signal(int number) const;

  TempDir folder_;
};

}  // namespace gitops::test
