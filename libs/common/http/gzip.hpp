#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops::http {

// One gzip member (RFC 1952). Level 1 by default: events are small and sent once.
std::string gzip_compress(std::string_view bytes, int level = 1);

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
