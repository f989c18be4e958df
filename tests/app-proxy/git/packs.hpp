#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

#include "common/core/crypto.hpp"

// Packs and packets as a hostile server might make them.
namespace gitops::test {

inline std::string packet(std::string_view payload) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::size_t size = payload.size() + 4;
  std::string out;
  for (const unsigned shift : {12U, 8U, 4U, 0U}) out += kDigits[(size >> shift) & 15U];
  return out += payload;
}

inline std::string deflated(std::string_view bytes) {
  auto size = ::compressBound(bytes.size());
  std::string out(size, '\0');
  ::compress2(reinterpret_cast<Bytef*>(out.data()), &size,
              reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 9);
  out.resize(size);
  return out;
}

// A number of 7 bits a byte, the lowest first.
inline std::string pack_number(std::uint64_t value) {
  std::string out;
  for (; value > 0x7f; value >>= 7U) out += static_cast<char>((value & 0x7fU) | 0x80U);
  return out += static_cast<char>(value);
}

enum class PackType : std::uint8_t { commit = 1, tree = 2, blob = 3, ofs_delta = 6, ref_delta = 7 };

// An object that says it has `claimed` bytes, and has those of `content`. `base`: of a delta, the
// distance or the id.
inline std::string pack_object(PackType type, std::string_view content, std::string_view base = {},
                               std::optional<std::uint64_t> claimed = {}) {
  std::uint64_t size = claimed.value_or(content.size());
  std::string out;
  auto byte = (static_cast<unsigned>(type) << 4U) | static_cast<unsigned>(size & 15U);
  for (size >>= 4U; size > 0; size >>= 7U) {
    out += static_cast<char>(byte | 0x80U);
    byte = static_cast<unsigned>(size & 0x7fU);
  }
  out += static_cast<char>(byte);
  out += base;
  return out + deflated(content);
}

// The distance from a delta back to its base.
inline std::string pack_distance(std::uint64_t distance) {
  std::string out(1, static_cast<char>(distance & 0x7fU));
  while ((distance >>= 7U) > 0) {
    --distance;
    out.insert(out.begin(), static_cast<char>((distance & 0x7fU) | 0x80U));
  }
  return out;
}

// A delta that makes `result` bytes of a base of `base` bytes, by copying its beginning.
inline std::string growing_delta(std::uint64_t base, std::uint64_t result) {
  std::string out = pack_number(base) + pack_number(result);
  constexpr std::uint64_t kMaxLength = 0xff'ffff;
  for (std::uint64_t left = result; left > 0;) {
    const auto part = std::min({left, base, kMaxLength});
    out += '\xf0';  // copy, from offset 0, a size of three bytes
    for (const unsigned shift : {0U, 8U, 16U}) out += static_cast<char>((part >> shift) & 0xffU);
    left -= part;
  }
  return out;
}

inline std::string pack_of(const std::vector<std::string>& objects,
                           std::optional<std::uint32_t> claimed = {}) {
  const auto count = claimed.value_or(static_cast<std::uint32_t>(objects.size()));
  std::string out("PACK\0\0\0\2", 8);
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    out += static_cast<char>((count >> shift) & 0xffU);
  }
  for (const auto& object : objects) out += object;
  const auto sum = sha1(out);
  return out += bytes_of(sum);
}

}  // namespace gitops::test
