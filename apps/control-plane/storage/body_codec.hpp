#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

// The encoding of an object's texts in the table `body`. Every codec stays readable in all later versions; a newer
// dictionary gets the next number. As wide as a column, so that no number is cut to a known one.
enum class BodyCodec : std::int64_t {  // NOLINT(performance-enum-size)
  zstd = 1,
  zstd_dictionary_1 = 2,  // with storage/dictionary/bodies_1.zdict
};
inline constexpr BodyCodec kBodyCodec = BodyCodec::zstd_dictionary_1;  // of new bodies

// Returns the dictionary of a codec; empty when it has none.
std::string_view dictionary_of(BodyCodec codec);

struct PackedBody {
  std::string bytes;
  std::size_t size = 0;  // unpacked, in bytes
  BodyCodec codec = kBodyCodec;
};
// Compresses the texts of an object. For any thread; each has a compressor of its own.
PackedBody pack_body(const ObjectBody& body, BodyCodec codec = kBodyCodec);
// Decompresses texts. Takes at most `size` bytes of memory, and 64 MiB. Errors: unsupported for the codec of a newer
// version; invalid_data for bytes that pack_body() did not make.
Result<ObjectBody> unpack_body(BodyCodec codec, std::string_view bytes, std::size_t size);

}  // namespace gitops::control_plane_server
