#include "event-reporter/ledger/digest.hpp"

#include <algorithm>

#include "common/core/encoding.hpp"

namespace gitops::reporter {

void Hasher::add(std::string_view text) {
  const std::uint64_t size = text.size();
  hash_.add({reinterpret_cast<const char*>(&size), sizeof size});
  hash_.add(text);
}

Digest Hasher::finish() {
  const auto full = hash_.finish();
  Digest digest{};
  std::copy_n(full.begin(), digest.size(), digest.begin());
  return digest;
}

std::string to_hex(const Digest& digest, std::size_t bytes) {
  return hex_encode({reinterpret_cast<const char*>(digest.data()), std::min(bytes, digest.size())});
}

}  // namespace gitops::reporter
