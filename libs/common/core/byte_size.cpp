#include "common/core/byte_size.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

namespace gitops {
namespace {

std::string size_text(std::int64_t bytes) {
  constexpr std::int64_t kMebi = 1024 * 1024;
  if (bytes > 0 && bytes % kMebi == 0) return std::to_string(bytes / kMebi) + "Mi";
  return std::to_string(bytes);
}

}  // namespace

Result<std::int64_t> parse_size(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::int64_t bytes;
  };
  static constexpr std::array kUnits{
      Unit{"", 1},           Unit{"k", 1'000},      Unit{"M", 1'000'000}, Unit{"G", 1'000'000'000},
      Unit{"Ki", 1LL << 10}, Unit{"Mi", 1LL << 20}, Unit{"Gi", 1LL << 30}};
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && number >= 0) {
    const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
    for (const auto& unit : kUnits) {
      if (unit.name != suffix) continue;
      if (number > std::numeric_limits<std::int64_t>::max() / unit.bytes) break;
      return number * unit.bytes;
    }
  }
  return fail(ErrorCode::invalid_argument, "not a number of bytes such as 1048576, 25Mi or 1G");
}

void add_size(ConfigReader& reader, SettingNames names, std::int64_t& target) {
  reader.add(std::move(names), "SIZE", size_text(target),
             [&target](const std::string& text) -> std::string {
               const auto size = parse_size(text);
               if (!size) return size.error().message;
               target = *size;
               return {};
             });
}

}  // namespace gitops
