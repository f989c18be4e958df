#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/core/error.hpp"

// The heads of yamux frames as bytes: docs/tunnel-protocol.md, "yamux". yamux_session.hpp gives them
// their meaning.
namespace gitops::tunnel::yamux {

using StreamId = std::uint32_t;
// Stands for the session in frames that belong to no stream.
inline constexpr StreamId kNoStream = 0;

enum class FrameType : std::uint8_t {
  data = 0,           // length: bytes that follow
  window_update = 1,  // length: what the receiver may send in addition
  ping = 2,           // length: any number, which the answer repeats
  go_away = 3,        // length: the reason
};

// Flags of a frame.
inline constexpr std::uint16_t kSyn = 1;  // opens a stream; a ping that asks
inline constexpr std::uint16_t kAck = 2;  // accepts a stream; a ping that answers
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
// Errors: protocol, for a version or a type that does not exist.
Result<FrameHead> read_frame_head(std::span<const char, FrameHead::kSize> bytes);

}  // namespace gitops::tunnel::yamux
