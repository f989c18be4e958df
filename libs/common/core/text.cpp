#include "common/core/text.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace gitops {

namespace {

// Returns the number of characters that must be changed, added or dropped to turn one text into the
// other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t changed = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[to.size()];
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::optional<std::string_view> nearest(std::string_view name,
                                        const std::vector<std::string_view>& known) {
  constexpr std::size_t kMaxLength = 100;  // length of a name that is worth comparing
  if (name.size() > kMaxLength) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t changes = edit_distance(name, candidate);
    if (changes >= distance || changes >= candidate.size()) continue;
    distance = changes;
    best = candidate;
  }
  return best;
}

std::string byte_count(std::uint64_t bytes) {
  constexpr std::uint64_t kKiB = 1024;
  constexpr std::uint64_t kMiB = kKiB * 1024;
  if (bytes != 0 && bytes % kMiB == 0) return std::to_string(bytes / kMiB) + " MiB";
  if (bytes != 0 && bytes % kKiB == 0) return std::to_string(bytes / kKiB) + " KiB";
  return std::to_string(bytes) + " bytes";
}

std::string shortened(std::string_view text, std::size_t most) {
  std::size_t length = std::min(text.size(), most);
  while (length < text.size() && length > 0 &&
         (static_cast<unsigned char>(text[length]) & 0xc0U) == 0x80U) {
    --length;
  }
  return std::string(text.substr(0, length)) + (length < text.size() ? "…" : "");
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string out;
  for (const std::string& item : items) {
    if (!out.empty()) out += separator;
    out += item;
  }
  return out;
}

}  // namespace gitops
