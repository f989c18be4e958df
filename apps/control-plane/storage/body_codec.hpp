#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

// How the table `body` holds an object's texts. A codec stays readable for ever.
enum class BodyCodec : std::uint8_t { zstd = 1 };
inline constexpr BodyCodec kBodyCodec = BodyCodec::zstd;

struct PackedBody {
  std::string bytes;
  std::size_t size = 0;  // unpacked
};
// For any thread; each has a compressor of its own.
PackedBody pack_body(const ObjectBody& body);
// invalid_data for bytes that pack_body() did not make; takes at most `size` bytes of memory, and 64 MiB.
Result<ObjectBody> unpack_body(BodyCodec codec, std::string_view bytes, std::size_t size);

}  // namespace gitops::control_plane_server
