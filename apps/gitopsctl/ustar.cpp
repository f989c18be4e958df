#include "gitopsctl/ustar.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

namespace gitops::ctl {

namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMaxName = 100;
constexpr std::size_t kMaxPrefix = 155;

// Offsets of the header's fields.
constexpr std::size_t kMode = 100;
constexpr std::size_t kUser = 108;
constexpr std::size_t kGroup = 116;
constexpr std::size_t kSize = 124;
constexpr std::size_t kTime = 136;
constexpr std::size_t kSum = 148;
constexpr std::size_t kType = 156;
constexpr std::size_t kMagic = 257;
constexpr std::size_t kPrefix = 345;

using Header = std::array<char, kBlock>;

// Splits a path into prefix and name.
std::optional<std::pair<std::string_view, std::string_view>> split(std::string_view path) {
  if (path.empty()) return {};
  if (path.size() <= kMaxName) return std::pair{std::string_view(), path};
  // The first slash behind which the rest is short enough.
  const auto slash = path.find('/', path.size() - kMaxName - 1);
  if (slash == std::string_view::npos || slash > kMaxPrefix || slash + 1 == path.size()) return {};
  return std::pair{path.substr(0, slash), path.substr(slash + 1)};
}

void put(Header& header, std::size_t at, std::string_view text) {
  text.copy(header.data() + at, text.size());
}

// Writes an octal number with leading zeros; a zero byte follows it.
void put_octal(Header& header, std::size_t at, std::size_t digits, std::uint64_t value) {
  std::array<char, 24> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, 8).ptr;
  const std::string_view number(text.data(), static_cast<std::size_t>(end - text.data()));
  put(header, at, std::string(digits - number.size(), '0') + std::string(number));
}

}  // namespace

bool fits_ustar(std::string_view path) {
  return split(path).has_value();
}

void append_file(std::string& archive, std::string_view path, std::string_view content,
                 WallTime changed) {
  const auto parts = split(path);
  if (!parts) throw std::invalid_argument("the path is too long for ustar");
  Header header{};
  put(header, kPrefix, parts->first);
  put(header, 0, parts->second);
  put_octal(header, kMode, 7, 0600);
  put_octal(header, kUser, 7, 0);
  put_octal(header, kGroup, 7, 0);
  put_octal(header, kSize, 11, content.size());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(changed.time_since_epoch()).count();
  put_octal(header, kTime, 11, static_cast<std::uint64_t>(seconds < 0 ? 0 : seconds));
  header[kType] = '0';
  put(header, kMagic, std::string_view("ustar\00000", 8));
  put(header, kSum, "        ");  // counts as blanks in its own sum
  std::uint64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  put_octal(header, kSum, 6, sum);
  header[kSum + 6] = '\0';
  archive.append(header.data(), header.size());
  archive += content;
  archive.append((kBlock - content.size() % kBlock) % kBlock, '\0');
}

void append_end(std::string& archive) {
  archive.append(2 * kBlock, '\0');
}

}  // namespace gitops::ctl
