#pragma once

#include <chrono>
#include <cstdint>

#include "common/net/buffer.hpp"
#include "common/net/channel.hpp"

namespace gitops::net {

// One end of a relay.
struct RelayEnd {
  Channel& channel;
  Buffer& received;          // of this end; may hold bytes already, which are passed on first
  std::uint64_t& passed_on;  // bytes of this end that the other one took; counted up
};

// Passes bytes in both directions, unread, until both ends have ended; the end of one side is
// passed on while the other one still sends. When nothing moves in either direction for `idle`, or
// one end is lost, both are aborted. One coroutine; memory: the two buffers.
Task<> relay(RelayEnd a, RelayEnd b, std::chrono::milliseconds idle);

}  // namespace gitops::net
