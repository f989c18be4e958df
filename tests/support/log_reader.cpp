#include "support/log_reader.hpp"

#include <csignal>
#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

namespace gitops::test {

std::vector<std::string> LogReader::command(const std::vector<std::string>& argv) const {
  std::vector<std::string> command = {
      "sh", "-c", R"(mkfifo "$0"; cat "$0" & echo $! >"$0.pid"; exec "$@" 2>"$0")", pipe()};
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

void LogReader::stop() {
  signal(SIGSTOP);
  const int end = ::open(pipe().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (end < 0) throw std::runtime_error(pipe() + ": nobody has it open");
  while (::write(end, "\n", 1) == 1) {
  }
  ::close(end);
}

void LogReader::go_on() {
  signal(SIGCONT);
}

void LogReader::signal(int number) const {
  const auto pid = std::stoi(read_file(pipe() + ".pid"));
  if (::kill(pid, number) != 0) throw std::runtime_error("the reader of the log has ended");
}

}  // namespace gitops::test
