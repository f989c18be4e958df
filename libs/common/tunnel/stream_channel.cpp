#include "common/tunnel/stream_channel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/tunnel/link.hpp"

namespace gitops::tunnel {

using net::Transfer;

StreamChannel::StreamChannel(Link& link, yamux::StreamId id)
    : Channel(link.channel_->reactor(), readiness_), link_(&link), id_(id) {
  readiness_.write.ready = true;
}

StreamChannel::~StreamChannel() {
  StreamChannel::close();
}

void StreamChannel::set_ready(net::Direction& direction) {
  direction.ready = true;
  if (direction.waker != nullptr) direction.waker->post(reactor().executor);
}

// -- notifications of the link --

void StreamChannel::take(std::string_view data) {
  // A reader that is always behind never empties the buffer. Erases rarely, so that each byte is
  // moved at most once.
  if (read_ > received_.size() / 2) received_.erase(0, std::exchange(read_, 0));
  received_ += data;
  set_ready(readiness_.read);
}

void StreamChannel::peer_ended() {
  peer_ended_ = true;
  readiness_.hung_up = true;
  set_ready(readiness_.read);
}

void StreamChannel::lose(Error error) {
  link_ = nullptr;
  open_ = false;
  received_ = {};
  readiness_.hung_up = true;
  fail_with(std::move(error));
  wake();
}

void StreamChannel::has_room() {
  set_ready(readiness_.write);
}

// -- operations of the user --

Transfer StreamChannel::try_read(std::span<char> room) {
  if (!open_) return {.what = Transfer::lost};
  const auto size = std::min(room.size(), received_.size() - read_);
  if (size == 0) {
    if (peer_ended_) return {.what = Transfer::end};
    readiness_.read.ready = false;
    return {.what = Transfer::nothing};
  }
  std::memcpy(room.data(), received_.data() + read_, size);
  read_ += size;
  if (read_ == received_.size()) {
    received_ = {};
    read_ = 0;
  }
  link_->session_.release(id_, size);
  link_->wake_up();
  return {.what = Transfer::data, .size = size};
}

Transfer StreamChannel::try_write(std::span<const asio::const_buffer> buffers) {
  if (!open_) return {.what = Transfer::lost};
  std::size_t written = 0;
  for (const auto& buffer : buffers) {
    const std::string_view bytes(static_cast<const char*>(buffer.data()), buffer.size());
    const auto size = link_->session_.write(id_, bytes);
    written += size;
    if (size < bytes.size()) break;
  }
  if (written == 0 && asio::buffer_size(buffers) > 0) {
    readiness_.write.ready = false;
    return {.what = Transfer::nothing};
  }
  link_->wake_up();
  return {.what = Transfer::data, .size = written};
}

void StreamChannel::shutdown_send() {
  if (!open_) return;
  link_->session_.end(id_);
  link_->wake_up();
}

void StreamChannel::leave() {
  auto* link = std::exchange(link_, nullptr);
  open_ = false;
  received_ = {};
  link->forget(id_);
  link->wake_up();
  wake();
}

void StreamChannel::close() {
  if (!open_) return;
  // Resets the stream if unread input remains, as TCP does.
  if (received_.empty()) {
    link_->session_.close(id_, Clock::now());
  } else {
    link_->session_.abort(id_);
  }
  leave();
}

void StreamChannel::abort() {
  if (!open_) return;
  link_->session_.abort(id_);
  leave();
}

}  // namespace gitops::tunnel
