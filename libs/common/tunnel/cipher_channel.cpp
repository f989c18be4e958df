#include "common/tunnel/cipher_channel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gitops::tunnel {
namespace {

using net::Transfer;

// Maximum number of bytes encrypted at a time.
constexpr std::size_t kMaxPiece = 16 * 1024;

}  // namespace

CipherChannel::CipherChannel(std::unique_ptr<net::Channel> below, const Secret& key,
                             std::string_view iv, std::string received)
    : Channel(below->reactor(), below->readiness()),
      below_(std::move(below)),
      encryptor_(key, iv),
      decryptor_(key),
      received_(std::move(received)) {
  // Clears the deadline below: this channel has its own deadlines.
  below_->set_deadline(kNever);
  buffered_ = !received_.empty() || below_->holds_bytes();
}

CipherChannel::~CipherChannel() {
  CipherChannel::close();
}

Transfer CipherChannel::as_below(Transfer transfer) {
  if (transfer.what == Transfer::lost) fail_with(below_->failure());
  return transfer;
}

Transfer CipherChannel::read_below(std::span<char> room) {
  if (received_.empty()) {
    const auto read = below_->try_read(room);
    buffered_ = below_->holds_bytes();
    return as_below(read);
  }
  const auto size = std::min(room.size(), received_.size());
  std::memcpy(room.data(), received_.data(), size);
  received_.erase(0, size);
  // Stays set: the channel below may also hold bytes.
  buffered_ = true;
  return {.what = Transfer::data, .size = size};
}

Transfer CipherChannel::try_read(std::span<char> room) {
  // Repeats while the bytes read belong to the IV.
  while (true) {
    const auto read = read_below(room);
    if (read.what != Transfer::data) return read;
    const auto plain = decryptor_.decrypt(room.first(read.size));
    if (plain.empty()) continue;
    std::memmove(room.data(), plain.data(), plain.size());
    return {.what = Transfer::data, .size = plain.size()};
  }
}

Transfer CipherChannel::try_write(std::span<const asio::const_buffer> buffers) {
  const auto size = std::min(asio::buffer_size(buffers), kMaxPiece);
  if (size == 0) return {.what = Transfer::data};
  if (sending_size_ == 0) {
    sending_.resize(size);
    asio::buffer_copy(asio::buffer(sending_.data(), size), buffers);
    encryptor_.encrypt(sending_, 0);
    sending_size_ = size;
  }
  while (!sending_.empty()) {
    const asio::const_buffer buffer(sending_.data(), sending_.size());
    const auto written = below_->try_write(std::span(&buffer, 1));
    if (written.what != Transfer::data) return as_below(written);
    sending_.erase(0, written.size);
  }
  return {.what = Transfer::data, .size = std::exchange(sending_size_, 0)};
}

}  // namespace gitops::tunnel
