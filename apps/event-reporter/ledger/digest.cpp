#include "event-reporter/ledger/digest.hpp"

#include <algorithm>
#include <cstring>

#include "common/core/encoding.hpp"

namespace gitops::reporter {

void Hasher::add(std::string_view text) {
  const std::uint64_t size = text.size();
  if (sizeof size + text.size() > waiting_.size() - size_) flush();
  std::memcpy(waiting_.data() + size_, &size, sizeof size);
  size_ += sizeof size;
  if (text.size() > waiting_.size() - size_) {
    flush();
    hash_.add(text);
  } else {
    std::ranges::copy(text, waiting_.data() + size_);
    size_ += text.size();
  }
}

void Hasher::flush() {
  hash_.add({waiting_.data(), size_});
  size_ = 0;
}

Digest Hasher::finish() {
  flush();
  const auto full = hash_.finish();
  Digest digest{};
  std::copy_n(full.begin(), digest.size(), digest.begin());
  return digest;
}

std::string to_hex(const Digest& digest, std::size_t bytes) {
  return hex_encode({reinterpret_cast<const char*>(digest.data()), std::min(bytes, digest.size())});
}

}  // namespace gitops::reporter
