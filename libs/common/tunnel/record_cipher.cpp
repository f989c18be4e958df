#include "common/tunnel/record_cipher.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include "common/core/crypto.hpp"

namespace gitops::tunnel {
namespace {

constexpr std::size_t kLengthSize = 4;

std::string length_text(std::size_t size) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += static_cast<char>(size >> static_cast<unsigned>(shift) & 0xffU);
  }
  return text;
}

void count_up(std::string& nonce) {
  for (char& byte : nonce | std::views::reverse) {
    byte = static_cast<char>(static_cast<unsigned char>(byte) + 1U);
    if (byte != 0) return;
  }
}

}  // namespace

RecordSealer::RecordSealer(Secret key, std::string_view nonce)
    : key_(std::move(key)), nonce_(nonce), first_(nonce) {}

void RecordSealer::seal(std::string& out, std::size_t start) {
  if (out.size() == start) return;
  auto plain = out.substr(start);
  wipe(out.data() + start, plain.size());
  out.resize(start);
  if (!std::exchange(has_begun_, true)) out += first_;
  for (std::string_view rest = plain; !rest.empty();) {
    const auto part = rest.substr(0, kMaxRecord);
    rest.remove_prefix(part.size());
    const auto length = length_text(part.size() + kSealTagSize);
    out += length;
    // GCM stays safe for 2^32 records, which a control stream does not reach.
    out += gitops::seal(key_, nonce_, part, first_ + length);
    count_up(nonce_);
  }
  wipe(plain.data(), plain.size());
}

Result<std::string> RecordOpener::open(std::string_view bytes) {
  // Moves bytes into `held` until its size is `size`. Returns whether it is complete.
  const auto hold = [&bytes](std::string& held, std::size_t size) {
    const auto part = bytes.substr(0, size - std::min(size, held.size()));
    held += part;
    bytes.remove_prefix(part.size());
    return held.size() >= size;
  };
  std::string plain;
  if (!hold(first_, kSealNonceSize)) return plain;
  if (nonce_.empty()) nonce_ = first_;
  while (hold(held_, kLengthSize)) {
    std::size_t size = 0;
    for (const char byte : std::string_view(held_).substr(0, kLengthSize)) {
      size = size << 8U | static_cast<unsigned char>(byte);
    }
    if (size < kSealTagSize) return fail(ErrorCode::protocol, "an encrypted record is too short");
    if (size > kMaxRecord + kSealTagSize) {
      return fail(ErrorCode::too_large, "an encrypted record is too long");
    }
    if (!hold(held_, kLengthSize + size)) break;
    const std::string_view record = held_;
    auto opened = unseal(key_, nonce_, record.substr(kLengthSize),
                         first_ + std::string(record.substr(0, kLengthSize)));
    if (!opened) {
      return fail(ErrorCode::protocol,
                  "an encrypted record cannot be read: another token, or changed on the way");
    }
    plain += *opened;
    held_ = {};
    count_up(nonce_);
  }
  return plain;
}

}  // namespace gitops::tunnel
