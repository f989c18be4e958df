#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/crypto.hpp"

namespace gitops::reporter {

// Identifies a content: the first half of a SHA-256.
using Digest = std::array<std::uint8_t, 16>;

// "8f1b…": lower-case hex of the first `bytes` bytes.
std::string to_hex(const Digest& digest, std::size_t bytes = 16);

// Digests a sequence of texts; the digests of ("ab", "c") and ("a", "bc") differ.
class Hasher {
 public:
  void add(std::string_view text);
  [[nodiscard]] Digest finish();

 private:
  void flush();

  Sha256 hash_;
  // Short texts are added to the sum together: most texts are, and each call costs as much as 100 bytes.
  std::array<char, 512> waiting_;
  std::size_t size_ = 0;  // of what waits
};

}  // namespace gitops::reporter
