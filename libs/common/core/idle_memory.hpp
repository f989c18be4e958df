#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

// Release of memory that an idle process holds and does not need.
namespace gitops {

// Returns free pieces of the heap and unchanged pages of the program and its libraries to the
// system. The kernel keeps those pages in its cache and maps them again where they are used. Takes
// about a millisecond. Any thread.
void release_idle_memory();

// Returns the mappings, begin and end, of a /proc/<pid>/smaps whose pages are those of a file: they
// cannot be written, and none was changed, as debuggers and probes do. Malformed entries are left
// out.
std::vector<std::pair<std::uintptr_t, std::uintptr_t>> unchanged_mappings(std::string_view smaps);

// Detects, once after each busy time, that a process has become quiet. Pure.
class QuietWatch {
 public:
  // Time between two calls of is_quiet().
  static constexpr std::chrono::seconds kPeriod{2};
  // CPU time in a period beyond which the process is busy.
  static constexpr std::chrono::milliseconds kBusy{20};

  // Returns true once after a busy time. `used` is the CPU time of the process since its start.
  bool is_quiet(std::chrono::microseconds used) {
    const bool is_busy = used - std::exchange(used_, used) > kBusy;
    if (is_busy) reported_ = false;
    return !is_busy && !std::exchange(reported_, true);
  }

 private:
  std::chrono::microseconds used_{};
  bool reported_ = false;
};

}  // namespace gitops
