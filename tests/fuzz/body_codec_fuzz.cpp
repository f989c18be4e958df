#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "control-plane/storage/body_codec.hpp"

// A row of the table `body`, as a damaged disk may return it: the first byte is the codec, the next two the size. The
// same bytes as a text come back from every codec.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops::control_plane_server;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const auto codec : {BodyCodec::zstd, BodyCodec::zstd_dictionary_1}) {
    const ObjectBody body{.live = std::string(bytes),
                          .in_git = std::string(bytes.substr(size / 2))};
    const auto packed = pack_body(body, codec);
    const auto back = unpack_body(codec, packed.bytes, packed.size);
    if (!back || *back != body) std::abort();
  }
  if (size < 3) return 0;
  const std::size_t claimed = data[1] * 256U + data[2];
  const auto damaged = unpack_body(static_cast<BodyCodec>(data[0] % 4), bytes.substr(3), claimed);
  if (damaged && damaged->live.size() + damaged->in_git.size() > claimed) std::abort();
  return 0;
}
