#include "common/tunnel/yamux_frame.hpp"

#include <utility>

namespace gitops::tunnel::yamux {
namespace {

constexpr unsigned kVersion = 0;

void append_big_endian(std::string& out, std::uint32_t value, unsigned bytes) {
  for (unsigned shift = 8 * bytes; shift > 0; shift -= 8) {
    out += static_cast<char>(value >> (shift - 8) & 0xffU);
  }
}

std::uint32_t read_big_endian(std::span<const char> bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes) value = value << 8U | static_cast<unsigned char>(byte);
  return value;
}

}  // namespace

void append_frame_head(std::string& out, const FrameHead& head) {
  append_big_endian(out, kVersion, 1);
  append_big_endian(out, std::to_underlying(head.type), 1);
  append_big_endian(out, head.flags, 2);
  append_big_endian(out, head.stream, 4);
  append_big_endian(out, head.length, 4);
}

Result<FrameHead> read_frame_head(std::span<const char, FrameHead::kSize> bytes) {
  if (const auto version = read_big_endian(bytes.first(1)); version != kVersion) {
    return fail(ErrorCode::protocol, "the peer sends yamux version " + std::to_string(version));
  }
  const auto type = read_big_endian(bytes.subspan(1, 1));
  if (type > std::to_underlying(FrameType::go_away)) {
    return fail(ErrorCode::protocol,
                "the peer sends a yamux frame of unknown type " + std::to_string(type));
  }
  return FrameHead{.type = static_cast<FrameType>(type),
                   .flags = static_cast<std::uint16_t>(read_big_endian(bytes.subspan(2, 2))),
                   .stream = read_big_endian(bytes.subspan(4, 4)),
                   .length = read_big_endian(bytes.subspan(8, 4))};
}

}  // namespace gitops::tunnel::yamux
