#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "common/net/buffer.hpp"
#include "common/net/channel.hpp"

namespace gitops::net {

// One end of a relay.
struct RelayEnd {
  Channel& channel;
  Buffer& received;          // from this end; existing bytes are relayed first
  std::uint64_t& passed_on;  // incremented by the bytes of this end that the other end accepted
  // The protocol of this end has no half-close: the end of its sending side also ends its reading.
  bool end_closes = false;
  // Receives the bytes of this end that the other end accepted, in order.
  std::function<void(std::string_view)> seen = {};
};

// Relays bytes in both directions until both ends have closed their sending sides. Relays a
// half-close; with RelayEnd::end_closes, both ends are closed instead, the other one gracefully.
// When one end takes no more bytes, relays what it has sent before, then closes both ends. Aborts
// both when no byte moves in either direction for `idle`, or when one end is lost. Uses one
// coroutine and no memory beyond the two buffers.
Task<> relay(RelayEnd a, RelayEnd b, std::chrono::milliseconds idle);

}  // namespace gitops::net
