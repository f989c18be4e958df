#include "common/core/idle_memory.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include <malloc.h>
#include <sys/mman.h>

#include "common/core/small_file.hpp"

namespace gitops {
namespace {

constexpr std::size_t kMaxSmaps = 1024 * 1024;

std::string_view next_line(std::string_view& text) {
  const auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

// The head of a mapping: "55d0c0a00000-55d0c0b00000 r-xp 00100000 08:01 1234   /usr/bin/program"
struct Head {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool is_file = false;  // private mapping of a file, not writable
};

bool read_head(std::string_view line, Head& head) {
  const auto* const last = line.data() + line.size();
  const auto begin = std::from_chars(line.data(), last, head.begin, 16);
  if (begin.ec != std::errc() || begin.ptr == last || *begin.ptr != '-') return false;
  const auto end = std::from_chars(begin.ptr + 1, last, head.end, 16);
  if (end.ec != std::errc()) return false;
  const std::string_view rest(end.ptr, static_cast<std::size_t>(last - end.ptr));
  // The rest begins with " r-xp …".
  head.is_file = rest.size() > 5 && rest[2] == '-' && rest[4] == 'p' && rest.contains('/');
  return true;
}

}  // namespace

std::vector<std::pair<std::uintptr_t, std::uintptr_t>> unchanged_mappings(std::string_view smaps) {
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> found;
  Head head;
  while (!smaps.empty()) {
    const auto line = next_line(smaps);
    constexpr std::string_view kAnonymous = "Anonymous:";
    if (line.starts_with(kAnonymous)) {
      const auto value = line.substr(std::min(line.size(), line.find_first_not_of(' ', 10)));
      if (head.is_file && head.begin < head.end && value == "0 kB") {
        found.emplace_back(head.begin, head.end);
      }
      head = {};
    } else if (Head next; read_head(line, next)) {
      head = next;
    }
  }
  return found;
}

void release_idle_memory() {
  if (const auto smaps = read_small_file("/proc/self/smaps", kMaxSmaps)) {
    for (const auto& [begin, end] : unchanged_mappings(*smaps)) {
      // A failure, as for locked memory, leaves the pages where they are.
      (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
  }
  malloc_trim(0);  // frees the text of smaps, too
}

}  // namespace gitops
