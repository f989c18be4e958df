#include "control-plane/storage/body_codec.hpp"

#include <array>
#include <memory>
#include <stdexcept>
#include <utility>
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
struct FreeDictionary {
  void operator()(ZSTD_CDict* dictionary) const { ZSTD_freeCDict(dictionary); }
  void operator()(ZSTD_DDict* dictionary) const { ZSTD_freeDDict(dictionary); }
};

// The digested dictionaries, which all threads share. Null for a codec without one.
const ZSTD_CDict* compressing_dictionary(BodyCodec codec) {
  static const auto make = [](BodyCodec of) {
    const auto bytes = dictionary_of(of);
    return std::unique_ptr<ZSTD_CDict, FreeDictionary>(
        ZSTD_createCDict(bytes.data(), bytes.size(), kLevel));
  };
  static const auto first = make(BodyCodec::zstd_dictionary_1);
  return codec == BodyCodec::zstd_dictionary_1 ? first.get() : nullptr;
}
const ZSTD_DDict* decompressing_dictionary(BodyCodec codec) {
  static const auto make = [](BodyCodec of) {
    const auto bytes = dictionary_of(of);
    return std::unique_ptr<ZSTD_DDict, FreeDictionary>(
        ZSTD_createDDict(bytes.data(), bytes.size()));
  };
  static const auto first = make(BodyCodec::zstd_dictionary_1);
  return codec == BodyCodec::zstd_dictionary_1 ? first.get() : nullptr;
}

bool is_known(BodyCodec codec) {
  return codec == BodyCodec::zstd || codec == BodyCodec::zstd_dictionary_1;
}

template <class Body>
auto parts_of(Body& body) {
  return std::array{&body.live, &body.desired, &body.in_git, &body.source, &body.errors};
}

}  // namespace

PackedBody pack_body(const ObjectBody& body, BodyCodec codec) {
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
                    .size = plain.size(),
                    .codec = codec};
  // The codec of the row names the dictionary, so the frame does not.
  ZSTD_CCtx_reset(context.get(), ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_dictIDFlag, 0);
  ZSTD_CCtx_refCDict(context.get(), compressing_dictionary(codec));
  const auto size = ZSTD_compress2(context.get(), packed.bytes.data(), packed.bytes.size(),
                                   plain.data(), plain.size());
  if (ZSTD_isError(size) != 0) throw std::runtime_error("zstd: out of memory");
  packed.bytes.resize(size);
  packed.bytes.shrink_to_fit();
  return packed;
}

Result<ObjectBody> unpack_body(BodyCodec codec, std::string_view bytes, std::size_t size) {
  if (!is_known(codec)) {
    return fail(ErrorCode::unsupported, "a body has codec " +
                                            std::to_string(std::to_underlying(codec)) +
                                            ", which a newer version of control-plane has written");
  }
  if (size > kMaxSize || size < kParts * kLengthSize) {
    return fail(ErrorCode::invalid_data, "a body has an impossible size");
  }
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context(ZSTD_createDCtx());
  std::string plain(size, '\0');
  ZSTD_DCtx_refDDict(context.get(), decompressing_dictionary(codec));
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
