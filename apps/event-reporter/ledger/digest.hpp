#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/crypto.hpp"

namespace gitops::reporter {

// The identity of a content: the first half of a SHA-256.
using Digest = std::array<std::uint8_t, 16>;

// Returns the lower-case hex of the first `bytes` bytes: "8f1b…".
std::string to_hex(const Digest& digest, std::size_t bytes = 16);

// Digests a sequence of texts; the digests of ("ab", "c") and ("a", "bc") differ.
class Hasher {
 public:
  void add(std::string_view text);
  [[nodiscard]] Digest finish();

 private:
  void flush();

  Sha256 hash_;
  // Buffer of short texts, which are added to the sum together: most texts are short, and each call
  // costs as much as 100 bytes.
  std::array<char, 512> waiting_;
  std::size_t size_ = 0;  // bytes in waiting_
};

}  // namespace gitops::reporter
