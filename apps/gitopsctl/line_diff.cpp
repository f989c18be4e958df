#include "gitopsctl/line_diff.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gitops::ctl {

namespace {

constexpr std::size_t kMaxLines = 4'000;
constexpr std::size_t kContext = 3;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Lengths of the longest common subsequences of the suffixes of two lists.
class CommonLengths {
 public:
  CommonLengths(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b)
      : columns_(b.size() + 1), lengths_((a.size() + 1) * columns_) {
    for (std::size_t i = a.size(); i-- > 0;) {
      for (std::size_t j = b.size(); j-- > 0;) {
        cell(i, j) = a[i] == b[j] ? static_cast<std::uint16_t>(cell(i + 1, j + 1) + 1)
                                  : std::max(cell(i + 1, j), cell(i, j + 1));
      }
    }
  }
  std::uint16_t& cell(std::size_t i, std::size_t j) { return lengths_[i * columns_ + j]; }

 private:
  std::size_t columns_;
  std::vector<std::uint16_t> lengths_;
};

}  // namespace

std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after) {
  const auto a = lines_of(before);
  const auto b = lines_of(after);
  std::vector<DiffLine> out;
  std::size_t i = 0;
  std::size_t j = 0;
  if (a.size() <= kMaxLines && b.size() <= kMaxLines) {
    CommonLengths common(a, b);
    while (i < a.size() && j < b.size()) {
      if (a[i] == b[j]) {
        out.push_back({' ', a[i++]});
        ++j;
      } else if (common.cell(i + 1, j) >= common.cell(i, j + 1)) {
        out.push_back({'-', a[i++]});
      } else {
        out.push_back({'+', b[j++]});
      }
    }
  }
  while (i < a.size()) out.push_back({'-', a[i++]});
  while (j < b.size()) out.push_back({'+', b[j++]});
  return out;
}

std::string unified_diff(std::string_view before, std::string_view after) {
  const auto lines = diff_lines(before, after);
  std::vector<bool> shown(lines.size());
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (lines[at].side == ' ') continue;
    const auto from = at - std::min(at, kContext);
    const auto to = std::min(at + kContext + 1, lines.size());
    std::fill(shown.begin() + static_cast<std::ptrdiff_t>(from),
              shown.begin() + static_cast<std::ptrdiff_t>(to), true);
  }
  std::string out;
  std::size_t old_line = 1;
  std::size_t new_line = 1;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (shown[at] && (at == 0 || !shown[at - 1])) {
      std::size_t olds = 0;
      std::size_t news = 0;
      for (std::size_t next = at; next < lines.size() && shown[next]; ++next) {
        olds += lines[next].side == '+' ? 0 : 1;
        news += lines[next].side == '-' ? 0 : 1;
      }
      out += "@@ -" + std::to_string(old_line) + "," + std::to_string(olds) + " +" +
             std::to_string(new_line) + "," + std::to_string(news) + " @@\n";
    }
    if (shown[at]) out += lines[at].side + std::string(lines[at].text) + '\n';
    old_line += lines[at].side == '+' ? 0 : 1;
    new_line += lines[at].side == '-' ? 0 : 1;
  }
  return out;
}

}  // namespace gitops::ctl
