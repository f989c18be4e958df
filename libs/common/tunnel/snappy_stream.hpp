#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

// The framing format of Snappy, in which frp's proxies with use_compression send: an identifier, then
// chunks of at most 64 KiB of data, each compressed or stored, with a checksum. Facts:
// https://github.com/google/snappy/blob/main/framing_format.txt. The blocks themselves are libsnappy's.
namespace gitops::tunnel {

// Data of one chunk.
inline constexpr std::size_t kSnappyChunk = 64 * 1024;

// CRC-32C (RFC 3720, Castagnoli), which the chunks carry in a masked form.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

// Writes one direction of a stream.
class SnappyEncoder {
 public:
  // Appends the chunks of these bytes, which can be decoded without what follows. The identifier goes
  // before the first of them. A chunk that would become hardly smaller is stored.
  void encode(std::string& out, std::string_view bytes);

 private:
  bool has_begun_ = false;
  std::string block_;
};

// Reads one direction of a stream. Holds at most one chunk: its memory grows with what was received,
// not with the length that a peer announces, and no chunk becomes more than kSnappyChunk bytes.
class SnappyDecoder {
 public:
  // Takes bytes from the front of `input`, up to the end of the next chunk with data, and returns
  // that. Empty: all was taken, and more is needed. Errors: protocol (no such format, a wrong checksum,
  // more than 1 MiB without data), too_large; after one the decoder is of no use.
  Result<std::string> next(std::string_view& input);
  // True within a chunk.
  [[nodiscard]] bool in_chunk() const { return !held_.empty() || skipped_ > 0; }

 private:
  Result<std::string> end_chunk();

  std::string held_;           // the part of a chunk that was received, with its head
  std::size_t skipped_ = 0;    // bytes that are left of a chunk that says nothing to us
  std::size_t fruitless_ = 0;  // bytes since the last data
  bool has_begun_ = false;
};

}  // namespace gitops::tunnel
