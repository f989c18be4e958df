#include "gitopsctl/safe_json.hpp"

#include <cstddef>
#include <string_view>

namespace gitops::ctl {

std::string safe_json(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (c == 0x7F) {
      out += "\\u007f";
    } else if (c == 0xC2 && next >= 0x80 && next < 0xA0) {
      constexpr std::string_view kHex = "0123456789abcdef";
      out += "\\u00";
      out += kHex[next >> 4U];
      out += kHex[next & 15U];
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace gitops::ctl
