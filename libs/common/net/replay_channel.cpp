#include "common/net/replay_channel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gitops::net {

ReplayChannel::ReplayChannel(std::unique_ptr<Channel> below, std::string received)
    : Channel(below->reactor(), below->readiness()),
      below_(std::move(below)),
      received_(std::move(received)) {
  below_->set_deadline(kNever);  // this channel has its own deadlines
  buffered_ = !received_.empty() || below_->holds_bytes();
}

Transfer ReplayChannel::try_read(std::span<char> room) {
  if (!received_.empty()) {
    const auto size = std::min(room.size(), received_.size());
    std::memcpy(room.data(), received_.data(), size);
    received_.erase(0, size);
    // Stays set, so that the channel below is read without an event.
    buffered_ = true;
    return {.what = Transfer::data, .size = size};
  }
  const auto read = below_->try_read(room);
  buffered_ = below_->holds_bytes();
  if (read.what == Transfer::lost) fail_with(below_->failure());
  return read;
}

Transfer ReplayChannel::try_write(std::span<const asio::const_buffer> buffers) {
  const auto written = below_->try_write(buffers);
  if (written.what == Transfer::lost) fail_with(below_->failure());
  return written;
}

}  // namespace gitops::net
