#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops::http {

// One gzip member (RFC 1952). Level 1 by default: events are small and sent once.
std::string gzip_compress(std::string_view bytes, int level = 1);

// Streaming encoder of one gzip member. Keeps its memory small (about 70 KiB) at the price of a
// slightly worse ratio, since many answers may be under way.
class Deflater {
 public:
  explicit Deflater(int level);
  ~Deflater();
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  enum class Flush { none, sync, finish };  // sync: everything so far can be decoded
  void feed(std::string_view bytes, Flush flush, std::string& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Streaming decoder for gzip and zlib ("deflate") bodies. Stops with ErrorCode::too_large when more
// than `limit` bytes came out (decompression bombs, AC-07).
class Inflater {
 public:
  explicit Inflater(std::size_t limit);
  Inflater(Inflater&&) noexcept;
  Inflater& operator=(Inflater&&) noexcept;
  ~Inflater();

  // Appends to `out` what these bytes decode to.
  Result<void> feed(std::string_view bytes, std::string& out);
  // True when the bytes so far end with a complete member; false before the first byte.
  [[nodiscard]] bool finished() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Result<std::string> gzip_decompress(std::string_view bytes, std::size_t limit);

}  // namespace gitops::http
