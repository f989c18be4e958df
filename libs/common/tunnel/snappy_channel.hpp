#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "common/net/channel.hpp"
#include "common/tunnel/snappy_stream.hpp"

namespace gitops::tunnel {

// Channel that compresses another channel, which it owns: the work streams of a proxy with
// use_compression. Sends the bytes of each write as complete chunks, so none waits for further
// bytes. Buffers at most one chunk for each direction. A malformed stream is `lost`.
class SnappyChannel : public net::Channel {
 public:
  // `received`: compressed bytes already read from the channel.
  SnappyChannel(std::unique_ptr<net::Channel> below, std::string received);
  ~SnappyChannel() override;

  [[nodiscard]] bool is_open() const override { return below_->is_open(); }
  void shutdown_send() override { below_->shutdown_send(); }
  void close() override { below_->close(); }
  void abort() override { below_->abort(); }
  net::Transfer try_read(std::span<char> room) override;
  // Writes as TLS does: a retry after a write that would have blocked must begin with the same
  // bytes.
  net::Transfer try_write(std::span<const asio::const_buffer> buffers) override;

 private:
  net::Transfer as_below(net::Transfer transfer);
  // Moves data into `room`.
  net::Transfer give(std::span<char> room);

  std::unique_ptr<net::Channel> below_;
  SnappyEncoder encoder_;
  SnappyDecoder decoder_;
  std::string received_;          // not decoded
  std::string data_;              // decoded
  std::size_t given_ = 0;         // bytes at the front of data_ that were read
  std::string sending_;           // encoded and not sent
  std::size_t sent_ = 0;          // bytes at the front of sending_
  std::size_t sending_size_ = 0;  // size of the write that sending_ belongs to
};

}  // namespace gitops::tunnel
