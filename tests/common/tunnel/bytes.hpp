#pragma once

#include <string>
#include <string_view>

#include "common/core/encoding.hpp"

namespace gitops::tunnel {

// "0a1b" as bytes.
inline std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(hex_value(text[i]) * 16 + hex_value(text[i + 1]));
  }
  return bytes;
}

}  // namespace gitops::tunnel
