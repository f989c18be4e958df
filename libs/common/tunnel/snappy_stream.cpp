#include "common/tunnel/snappy_stream.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <snappy-c.h>

namespace gitops::tunnel {
namespace {

constexpr std::string_view kIdentifier = "sNaPpY";
constexpr std::size_t kHeadSize = 4;  // type, and length in 24 bits, little endian
constexpr std::size_t kSumSize = 4;
constexpr unsigned kCompressed = 0x00;
constexpr unsigned kStored = 0x01;
constexpr unsigned kFirstSkippable = 0x80;  // up to 0xfe, which is padding
constexpr unsigned kStream = 0xff;
// Maximum size of a compressed block of kSnappyChunk bytes, by libsnappy's formula.
constexpr std::size_t kMaxBlock = 32 + kSnappyChunk + kSnappyChunk / 6;
// Maximum size of consecutive chunks without data that a peer may send.
constexpr std::size_t kMaxFruitless = 1024 * 1024;

// -- the checksum: eight bytes a step, by tables --

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

consteval Tables make_tables() {
  constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reversed
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1U ^ ((sum & 1U) != 0 ? kPolynomial : 0U);
    tables[0][byte] = sum;
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    for (std::size_t i = 1; i < tables.size(); ++i) {
      const auto before = tables[i - 1][byte];
      tables[i][byte] = before >> 8U ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

unsigned byte_at(std::string_view bytes, std::size_t place) {
  return static_cast<unsigned char>(bytes[place]);
}

std::uint32_t read_32(std::string_view bytes) {
  return byte_at(bytes, 0) | byte_at(bytes, 1) << 8U | byte_at(bytes, 2) << 16U |
         byte_at(bytes, 3) << 24U;
}

// Returns the masked checksum. The mask protects the sums of data that contains sums itself.
std::uint32_t masked_sum(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

void append_little_endian(std::string& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> static_cast<unsigned>(8 * i));
}

std::unexpected<Error> malformed(const char* what) {
  return fail(ErrorCode::protocol, std::string("a compressed stream: ") + what);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t sum = ~0U;
  while (bytes.size() >= 8) {
    const auto low = sum ^ read_32(bytes);
    const auto high = read_32(bytes.substr(4));
    sum = kTables[7][low & 0xffU] ^ kTables[6][low >> 8U & 0xffU] ^ kTables[5][low >> 16U & 0xffU] ^
          kTables[4][low >> 24U] ^ kTables[3][high & 0xffU] ^ kTables[2][high >> 8U & 0xffU] ^
          kTables[1][high >> 16U & 0xffU] ^ kTables[0][high >> 24U];
    bytes.remove_prefix(8);
  }
  for (const char byte : bytes) {
    sum = sum >> 8U ^ kTables[0][(sum ^ static_cast<unsigned char>(byte)) & 0xffU];
  }
  return ~sum;
}

void SnappyEncoder::encode(std::string& out, std::string_view bytes) {
  if (!has_begun_) {
    has_begun_ = true;
    append_little_endian(out, kStream | static_cast<std::uint32_t>(kIdentifier.size()) << 8U, 4);
    out += kIdentifier;
  }
  while (!bytes.empty()) {
    const auto data = bytes.substr(0, kSnappyChunk);
    bytes.remove_prefix(data.size());
    block_.resize(snappy_max_compressed_length(data.size()));
    auto size = block_.size();
    const bool is_compressed =
        snappy_compress(data.data(), data.size(), block_.data(), &size) == SNAPPY_OK &&
        size < data.size() - data.size() / 8;
    const auto body = is_compressed ? std::string_view(block_).substr(0, size) : data;
    const auto length = static_cast<std::uint32_t>(kSumSize + body.size());
    append_little_endian(out, (is_compressed ? kCompressed : kStored) | length << 8U, 4);
    append_little_endian(out, masked_sum(data), 4);
    out += body;
  }
  block_ = {};
}

Result<std::string> SnappyDecoder::next(std::string_view& input) {
  // Moves bytes into `held_` until its size is `size`. Returns whether it is complete.
  const auto hold = [&](std::size_t size) {
    const auto part = input.substr(0, size - std::min(size, held_.size()));
    held_ += part;
    fruitless_ += part.size();
    input.remove_prefix(part.size());
    return held_.size() >= size;
  };
  while (true) {
    if (skipped_ > 0) {
      const auto size = std::min(skipped_, input.size());
      input.remove_prefix(size);
      skipped_ -= size;
      fruitless_ += size;
    }
    if (fruitless_ > kMaxFruitless) return malformed("too much that is no data");
    if (skipped_ > 0 || !hold(kHeadSize)) return std::string();
    const auto type = byte_at(held_, 0);
    const std::size_t length = read_32(held_) >> 8U;
    if (!has_begun_ && type != kStream) return malformed("it has no identifier");
    if (type == kStream && length != kIdentifier.size()) return malformed("a wrong identifier");
    if (type > kStored && type < kFirstSkippable) return malformed("a chunk of an unknown type");
    if (type >= kFirstSkippable && type != kStream) {
      skipped_ = length;
      held_.clear();
      continue;
    }
    if (type <= kStored) {
      if (length <= kSumSize) return malformed("a chunk without data");
      if (length > kSumSize + (type == kStored ? kSnappyChunk : kMaxBlock)) {
        return fail(ErrorCode::too_large, "a compressed stream: a chunk is too long");
      }
    }
    if (!hold(kHeadSize + length)) return std::string();
    auto data = end_chunk();
    held_ = {};
    if (!data) return data;
    if (data->empty()) continue;
    fruitless_ = 0;
    return data;
  }
}

// Completes the chunk in held_ and returns its data.
Result<std::string> SnappyDecoder::end_chunk() {
  const std::string_view chunk = std::string_view(held_).substr(kHeadSize);
  const auto type = byte_at(held_, 0);
  if (type == kStream) {
    if (chunk != kIdentifier) return malformed("a wrong identifier");
    has_begun_ = true;
    return std::string();
  }
  const auto body = chunk.substr(kSumSize);
  std::string data;
  if (type == kStored) {
    data = body;
  } else {
    std::size_t size = 0;
    if (snappy_uncompressed_length(body.data(), body.size(), &size) != SNAPPY_OK) {
      return malformed("a malformed block");
    }
    if (size > kSnappyChunk) {
      return fail(ErrorCode::too_large, "a compressed stream: a chunk becomes too long");
    }
    data.resize(size);
    if (snappy_uncompress(body.data(), body.size(), data.data(), &size) != SNAPPY_OK) {
      return malformed("a malformed block");
    }
  }
  if (masked_sum(data) != read_32(chunk)) return malformed("a wrong checksum");
  return data;
}

}  // namespace gitops::tunnel
