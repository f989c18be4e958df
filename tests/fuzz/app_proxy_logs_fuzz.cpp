// What log servers and the API server send: lines of three formats, whose first byte chooses, and objects.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/logs/log_lines.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxLine = 64;

void try_splitter(std::string_view text, LineSplitter::Long longer) {
  LineSplitter splitter(kMaxLine, longer);
  std::size_t bytes = 0;
  const auto take = [&](const std::vector<std::string>& lines) {
    for (const auto& line : lines) {
      if (line.size() > kMaxLine || line.contains('\n')) std::abort();
      bytes += line.size();
    }
  };
  // In pieces of growing length.
  for (std::size_t at = 0, size = 1; at < text.size(); at += size++) {
    take(splitter.feed(text.substr(at, size)));
  }
  take(splitter.finish());
  if (bytes > text.size()) std::abort();
}

}  // namespace
}  // namespace gitops::app_proxy

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops::app_proxy;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.empty()) return 0;
  const auto rest = text.substr(1);
  try_splitter(rest, LineSplitter::Long::cut);
  try_splitter(rest, LineSplitter::Long::drop);
  const auto format = static_cast<LogFormat>(data[0] % 3);
  if (const auto line = parse_log_line(format, rest); line && *line) {
    (void)LogFilter{.contains = "!x", .since = gitops::WallTime(), .until = gitops::WallTime()}
        .passes(**line);
  }
  // Of objects, app-proxy reads what is JSON.
  (void)component_of(rest);
  return 0;
}
