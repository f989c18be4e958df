#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

// Memory that an idle process holds and does not need.
namespace gitops {

// Gives it back: free pieces of the heap, and unchanged pages of the program and its libraries. The
// kernel keeps those in its cache and maps them again where they are used. Takes about a
// millisecond. Any thread.
void release_idle_memory();

// The mappings, begin and end, of a /proc/<pid>/smaps whose pages are those of a file: they cannot
// be written, and none was changed, as debuggers and probes do. What is malformed is left out.
std::vector<std::pair<std::uintptr_t, std::uintptr_t>> unchanged_mappings(std::string_view smaps);

// Tells once after each busy time that a process has become quiet. Pure.
class QuietWatch {
 public:
  // Between two calls of is_quiet().
  static constexpr std::chrono::seconds kPeriod{2};
  // CPU time in a period beyond which the process is busy.
  static constexpr std::chrono::milliseconds kBusy{20};

  // `used`: the CPU time of the process since its start.
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
