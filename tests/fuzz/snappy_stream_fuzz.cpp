// A compressed stream from anywhere, and one of our own. What comes out must not depend on how the
// bytes are split, no chunk becomes longer than the format allows, and what is encoded is decoded to
// the same bytes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/tunnel/snappy_stream.hpp"

namespace {

using namespace gitops;
using namespace gitops::tunnel;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Outcome {
  std::string data;
  bool failed = false;

  bool operator==(const Outcome&) const = default;
};

Outcome decode(std::string_view bytes, std::string_view sizes) {
  SnappyDecoder decoder;
  Outcome outcome;
  for (std::size_t turn = 0; !bytes.empty(); ++turn) {
    const std::size_t size =
        sizes.empty() ? bytes.size() : 1U + static_cast<unsigned char>(sizes[turn % sizes.size()]);
    auto part = bytes.substr(0, size);
    bytes.remove_prefix(part.size());
    while (true) {
      const auto data = decoder.next(part);
      if (!data) {
        outcome.failed = true;
        return outcome;
      }
      require(data->size() <= kSnappyChunk);
      if (data->empty()) break;
      outcome.data += *data;
    }
    require(part.empty());
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first bytes choose the split.
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  if (all.size() < 4) return 0;
  const auto sizes = all.substr(0, 3);
  const auto bytes = all.substr(3);
  require(decode(bytes, sizes) == decode(bytes, {}));
  // Behind an identifier more of them are read.
  const std::string behind = std::string("\xff\x06\0\0sNaPpY", 10) + std::string(bytes);
  require(decode(behind, sizes) == decode(behind, {}));

  SnappyEncoder encoder;
  std::string wire;
  encoder.encode(wire, bytes.substr(0, bytes.size() / 2));
  encoder.encode(wire, bytes.substr(bytes.size() / 2));
  const auto outcome = decode(wire, sizes);
  require(!outcome.failed && outcome.data == bytes);
  return 0;
}
