#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/core/error.hpp"

// Heads of yamux frames as bytes: docs/reference/tunnel/protocol.md, "yamux". yamux_session.hpp defines their
// semantics.
namespace gitops::tunnel::yamux {

using StreamId = std::uint32_t;
// Stream id of frames that belong to the session.
inline constexpr StreamId kNoStream = 0;

enum class FrameType : std::uint8_t {
  data = 0,           // length: number of bytes that follow
  window_update = 1,  // length: number of further bytes that the receiver may send
  ping = 2,           // length: any number, which the response repeats
  go_away = 3,        // length: the reason
};

// Flags of a frame.
inline constexpr std::uint16_t kSyn = 1;  // opens a stream; on a ping: the request
inline constexpr std::uint16_t kAck = 2;  // accepts a stream; on a ping: the response
inline constexpr std::uint16_t kFin = 4;  // ends the sending side
inline constexpr std::uint16_t kRst = 8;  // ends both sides

// Reasons of go_away.
inline constexpr std::uint32_t kNormal = 0;
inline constexpr std::uint32_t kProtocolError = 1;
inline constexpr std::uint32_t kInternalError = 2;

struct FrameHead {
  static constexpr std::size_t kSize = 12;
  FrameType type = FrameType::data;
  std::uint16_t flags = 0;
  StreamId stream = kNoStream;
  std::uint32_t length = 0;

  bool operator==(const FrameHead&) const = default;
};

void append_frame_head(std::string& out, const FrameHead& head);
// Parses a head. Errors: protocol, for an unknown version or type.
Result<FrameHead> read_frame_head(std::span<const char, FrameHead::kSize> bytes);

}  // namespace gitops::tunnel::yamux
