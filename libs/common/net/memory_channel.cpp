#include "common/net/memory_channel.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace gitops::net {

struct MemoryChannel::Ends {
  std::size_t capacity = 0;
  std::array<Pipe, 2> to;  // to[i]: in transit to end i
  std::array<MemoryChannel*, 2> end{};
};

std::pair<MemoryChannel::Ptr, MemoryChannel::Ptr> MemoryChannel::pair(const Executor& executor,
                                                                      std::size_t capacity) {
  auto& reactor = Reactor::of(executor);
  auto ends = std::make_shared<Ends>();
  ends->capacity = capacity;
  return {Ptr(new MemoryChannel(reactor, ends, 0)), Ptr(new MemoryChannel(reactor, ends, 1))};
}

MemoryChannel::MemoryChannel(Reactor& reactor, std::shared_ptr<Ends> ends, std::size_t own)
    : Channel(reactor, readiness_), ends_(std::move(ends)), own_(own) {
  ends_->end[own_] = this;
  readiness_.write.ready = true;
}

MemoryChannel::~MemoryChannel() {
  MemoryChannel::close();
  ends_->end[own_] = nullptr;
}

MemoryChannel::Pipe& MemoryChannel::incoming() {
  return ends_->to[own_];
}

MemoryChannel::Pipe& MemoryChannel::outgoing() {
  return ends_->to[1 - own_];
}

void MemoryChannel::notify_peer() {
  if (auto* peer = ends_->end[1 - own_]) peer->wake();
}

Transfer MemoryChannel::try_read(std::span<char> room) {
  if (!open_) return {.what = Transfer::lost};
  auto& pipe = incoming();
  if (pipe.broken) {
    fail_with({.code = ErrorCode::unavailable, .message = "connection reset by peer"});
    return {.what = Transfer::lost};
  }
  if (!pipe.bytes.empty()) {
    const auto size = std::min(room.size(), pipe.bytes.size());
    std::memcpy(room.data(), pipe.bytes.data(), size);
    pipe.bytes.erase(0, size);
    notify_peer();
    return {.what = Transfer::data, .size = size};
  }
  if (pipe.ended) return {.what = Transfer::end};
  readiness_.read.ready = false;
  return {.what = Transfer::nothing};
}

Transfer MemoryChannel::try_write(std::span<const asio::const_buffer> buffers) {
  if (!open_) return {.what = Transfer::lost};
  auto& pipe = outgoing();
  if (pipe.broken || pipe.ended) {
    fail_with({.code = ErrorCode::unavailable, .message = "broken pipe"});
    return {.what = Transfer::lost};
  }
  std::size_t written = 0;
  for (const auto& buffer : buffers) {
    const auto room = ends_->capacity - std::min(ends_->capacity, pipe.bytes.size());
    const auto size = std::min(room, buffer.size());
    pipe.bytes.append(static_cast<const char*>(buffer.data()), size);
    written += size;
  }
  if (written == 0 && asio::buffer_size(buffers) > 0) {
    readiness_.write.ready = false;
    return {.what = Transfer::nothing};
  }
  notify_peer();
  return {.what = Transfer::data, .size = written};
}

void MemoryChannel::shutdown_send() {
  if (!open_) return;
  outgoing().ended = true;
  if (auto* peer = ends_->end[1 - own_]) peer->readiness_.hung_up = true;
  notify_peer();
}

void MemoryChannel::leave() {
  open_ = false;
  // No one reads from this end any more.
  incoming().broken = true;
  if (auto* peer = ends_->end[1 - own_]) {
    peer->readiness_.hung_up = true;
    peer->wake();
  }
  wake();
}

void MemoryChannel::close() {
  if (!open_) return;
  // Resets the connection if unread input remains, as TCP does.
  if (!incoming().bytes.empty()) outgoing().broken = true;
  outgoing().ended = true;
  leave();
}

void MemoryChannel::abort() {
  if (!open_) return;
  outgoing().broken = true;
  leave();
}

}  // namespace gitops::net
