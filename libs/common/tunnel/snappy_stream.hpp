#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

// Snappy's framing format, which frp's proxies with use_compression use: an identifier, then chunks
// of at most 64 KiB of data, each compressed or stored, with a checksum. Specification:
// https://github.com/google/snappy/blob/main/framing_format.txt. libsnappy codes the blocks.
namespace gitops::tunnel {

// Maximum data of one chunk, in bytes.
inline constexpr std::size_t kSnappyChunk = 64 * 1024;

// CRC-32C (RFC 3720, Castagnoli), which the chunks carry in a masked form.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

// Encodes one direction of a stream.
class SnappyEncoder {
 public:
  // Appends the chunks of these bytes, which can be decoded without later bytes. Inserts the
  // identifier before the first of them. Stores a chunk that compression would hardly shrink.
  void encode(std::string& out, std::string_view bytes);

 private:
  bool has_begun_ = false;
  std::string block_;
};

// Decodes one direction of a stream. Buffers at most one chunk. Its memory is proportional to the
// bytes received, whatever length a peer announces, and a chunk decodes to at most kSnappyChunk
// bytes.
class SnappyDecoder {
 public:
  // Consumes bytes from the front of `input`, at most up to the end of the next chunk with data,
  // and returns its data. Returns an empty text when all input was consumed and more is needed.
  // Errors: protocol (malformed, a wrong checksum, more than 1 MiB without data), too_large; the
  // decoder is unusable after an error.
  Result<std::string> next(std::string_view& input);
  // Returns whether a chunk is incomplete.
  [[nodiscard]] bool in_chunk() const { return !held_.empty() || skipped_ > 0; }

 private:
  Result<std::string> end_chunk();

  std::string held_;           // received part of a chunk, with its head
  std::size_t skipped_ = 0;    // remaining bytes of a skipped chunk
  std::size_t fruitless_ = 0;  // bytes since the last data
  bool has_begun_ = false;
};

}  // namespace gitops::tunnel
