#include "control-plane/storage/body_codec.hpp"

#include <array>
#include <memory>
#include <stdexcept>
#include <zstd.h>

namespace gitops::control_plane_server {
namespace {

constexpr int kLevel = 3;
constexpr std::size_t kMaxSize = 64UL * 1024 * 1024;
constexpr std::size_t kLengthSize = 4;
constexpr std::size_t kParts = 5;

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

template <class Body>
auto parts_of(Body& body) {
  return std::array{&body.live, &body.desired, &body.in_git, &body.source, &body.errors};
}

}  // namespace

PackedBody pack_body(const ObjectBody& body) {
  std::string plain;
  for (const auto* part : parts_of(body)) {
    const auto size = static_cast<std::uint32_t>(part->size());
    for (unsigned shift = 0; shift < 32; shift += 8) {
      plain += static_cast<char>(static_cast<unsigned char>(size >> shift));
    }
  }
  for (const auto* part : parts_of(body)) plain += *part;
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
  PackedBody packed{.bytes = std::string(ZSTD_compressBound(plain.size()), '\0'),
                    .size = plain.size()};
  const auto size = ZSTD_compressCCtx(context.get(), packed.bytes.data(), packed.bytes.size(),
                                      plain.data(), plain.size(), kLevel);
  if (ZSTD_isError(size) != 0) throw std::runtime_error("zstd: out of memory");
  packed.bytes.resize(size);
  packed.bytes.shrink_to_fit();
  return packed;
}

Result<ObjectBody> unpack_body(BodyCodec codec, std::string_view bytes, std::size_t size) {
  if (codec != BodyCodec::zstd) {
    return fail(ErrorCode::unsupported, "a body has a codec that this version does not know");
  }
  if (size > kMaxSize || size < kParts * kLengthSize) {
    return fail(ErrorCode::invalid_data, "a body has an impossible size");
  }
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context(ZSTD_createDCtx());
  std::string plain(size, '\0');
  const auto done =
      ZSTD_decompressDCtx(context.get(), plain.data(), plain.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(done) != 0 || done != size) {
    return fail(ErrorCode::invalid_data, "a body is damaged");
  }
  ObjectBody body;
  std::size_t at = kParts * kLengthSize;
  std::size_t head = 0;
  for (auto* part : parts_of(body)) {
    std::size_t length = 0;
    for (unsigned shift = 0; shift < 32; shift += 8) {
      length |= static_cast<std::size_t>(static_cast<unsigned char>(plain[head++])) << shift;
    }
    if (length > plain.size() - at) return fail(ErrorCode::invalid_data, "a body is damaged");
    part->assign(plain, at, length);
    at += length;
  }
  return body;
}

}  // namespace gitops::control_plane_server
