#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <time.h>

#include <sys/types.h>

namespace gitops::bench {

// User and system time of a running process, in seconds; of all its threads.
inline double cpu_of(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
    throw std::runtime_error("the measured process is gone");
  }
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
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
