#pragma once

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sys/types.h>
#include <unistd.h>

namespace gitops::bench {

// User and system time of a running process, in seconds; of all its threads.
inline double cpu_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) throw std::runtime_error("the measured process is gone");
  std::istringstream fields(text.substr(name_end + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// A line of /proc/PID/status ("VmRSS:", "VmHWM:") in MB of 1,000,000 bytes.
inline double memory_of(pid_t pid, std::string_view line_name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(line_name)) return std::stod(line.substr(line_name.size())) * 1024 / 1e6;
  }
  throw std::runtime_error("the measured process is gone");
}

}  // namespace gitops::bench
