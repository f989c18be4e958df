#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

// The encoding of an object's texts in the table `body`. Every codec stays readable in all later versions.
enum class BodyCodec : std::uint8_t { zstd = 1 };
inline constexpr BodyCodec kBodyCodec = BodyCodec::zstd;

struct PackedBody {
  std::string bytes;
  std::size_t size = 0;  // unpacked, in bytes
};
// Compresses the texts of an object. For any thread; each has a compressor of its own.
PackedBody pack_body(const ObjectBody& body);
// Decompresses texts. Takes at most `size` bytes of memory, and 64 MiB. invalid_data: bytes that pack_body() did not
// make.
Result<ObjectBody> unpack_body(BodyCodec codec, std::string_view bytes, std::size_t size);

}  // namespace gitops::control_plane_server
