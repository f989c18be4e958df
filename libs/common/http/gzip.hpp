#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/http/decompressor.hpp"

namespace gitops::http {

// Compresses to one gzip member (RFC 1952). The default level is 1: events are small and sent once.
std::string gzip_compress(std::string_view bytes, int level = 1);

// Streaming encoder of one gzip member. Uses little memory (about 70 KiB), since many responses may
// be in flight, for a slightly worse ratio.
class Deflater {
 public:
  explicit Deflater(int level);
  ~Deflater();
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  enum class Flush { none, sync, finish };  // sync: all bytes so far can be decoded
  void feed(std::string_view bytes, Flush flush, std::string& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Streaming decoder for gzip and zlib ("deflate") bodies. Error: ErrorCode::too_large after `limit`
// bytes of output (decompression bombs, AC-07).
class Inflater final : public Decompressor {
 public:
  explicit Inflater(std::size_t limit);
  Inflater(Inflater&&) noexcept;
  Inflater& operator=(Inflater&&) noexcept;
  ~Inflater() override;

  Result<void> feed(std::string_view bytes, std::string& out) override;
  // Returns whether the bytes so far end with a complete member.
  [[nodiscard]] bool finished() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Result<std::string> gzip_decompress(std::string_view bytes, std::size_t limit);

}  // namespace gitops::http
