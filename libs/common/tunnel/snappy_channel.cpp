#include "common/tunnel/snappy_channel.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace gitops::tunnel {
namespace {

using net::Transfer;

// Maximum number of bytes read from below at a time.
constexpr std::size_t kRead = 16 * 1024;

}  // namespace

SnappyChannel::SnappyChannel(std::unique_ptr<net::Channel> below, std::string received)
    : Channel(below->reactor(), below->readiness()),
      below_(std::move(below)),
      received_(std::move(received)) {
  // Clears the deadline below: this channel has its own deadlines.
  below_->set_deadline(kNever);
  buffered_ = !received_.empty() || below_->holds_bytes();
}

SnappyChannel::~SnappyChannel() {
  SnappyChannel::close();
}

Transfer SnappyChannel::as_below(Transfer transfer) {
  if (transfer.what == Transfer::lost) fail_with(below_->failure());
  return transfer;
}

Transfer SnappyChannel::give(std::span<char> room) {
  const auto size = std::min(room.size(), data_.size() - given_);
  std::memcpy(room.data(), data_.data() + given_, size);
  given_ += size;
  if (given_ == data_.size()) {
    data_ = {};
    given_ = 0;
  }
  buffered_ = !data_.empty() || !received_.empty() || below_->holds_bytes();
  return {.what = Transfer::data, .size = size};
}

Transfer SnappyChannel::try_read(std::span<char> room) {
  // Reads on while chunks are incomplete or without data; the decoder limits their size.
  while (data_.empty()) {
    if (received_.empty()) {
      std::array<char, kRead> bytes;
      const auto read = below_->try_read(bytes);
      buffered_ = below_->holds_bytes();
      if (read.what == Transfer::end && decoder_.in_chunk()) {
        // A truncated stream is an error, as with TLS.
        fail_with({.code = ErrorCode::protocol, .message = "a compressed stream ends too early"});
        close();
        return {.what = Transfer::lost};
      }
      if (read.what != Transfer::data) return as_below(read);
      received_.assign(bytes.data(), read.size);
    }
    std::string_view input = received_;
    auto data = decoder_.next(input);
    if (!data) {
      received_ = {};
      fail_with(std::move(data.error()));
      close();
      return {.what = Transfer::lost};
    }
    data_ = std::move(*data);
    if (input.empty()) {
      received_ = {};
    } else {
      received_.erase(0, received_.size() - input.size());
    }
  }
  return give(room);
}

Transfer SnappyChannel::try_write(std::span<const asio::const_buffer> buffers) {
  const auto size = std::min(asio::buffer_size(buffers), kSnappyChunk);
  if (size == 0) return {.what = Transfer::data};
  if (sending_size_ == 0) {
    std::string bytes(size, '\0');
    asio::buffer_copy(asio::buffer(bytes), buffers);
    encoder_.encode(sending_, bytes);
    sending_size_ = size;
  }
  while (sent_ < sending_.size()) {
    const asio::const_buffer buffer(sending_.data() + sent_, sending_.size() - sent_);
    const auto written = below_->try_write(std::span(&buffer, 1));
    if (written.what != Transfer::data) return as_below(written);
    sent_ += written.size;
  }
  sending_ = {};
  sent_ = 0;
  return {.what = Transfer::data, .size = std::exchange(sending_size_, 0)};
}

}  // namespace gitops::tunnel
