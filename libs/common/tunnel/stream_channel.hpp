#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "common/net/channel.hpp"
#include "common/tunnel/yamux_frame.hpp"

namespace gitops::tunnel {

class Link;

// Stream of a Link as a channel. Buffers received data that was not read, at most the receive
// window of the link's session. It may outlive its link, and is `lost` after that. Loop of the link
// only.
//
// shutdown_send() sends the written data, then the end. close() drops unread data; if the peer
// sends more, the stream is reset. abort() resets the stream.
class StreamChannel : public net::Channel {
 public:
  ~StreamChannel() override;

  [[nodiscard]] bool is_open() const override { return open_; }
  void shutdown_send() override;
  void close() override;
  void abort() override;
  net::Transfer try_read(std::span<char> room) override;
  net::Transfer try_write(std::span<const asio::const_buffer> buffers) override;

 private:
  friend class Link;
  StreamChannel(Link& link, yamux::StreamId id);

  // Notifications of the link.
  void take(std::string_view data);
  void peer_ended();
  void lose(Error error);
  void has_room();

  void set_ready(net::Direction& direction);
  void leave();

  net::Readiness readiness_;
  Link* link_;  // null once the stream or the link is over
  yamux::StreamId id_;
  std::string received_;
  std::size_t read_ = 0;  // bytes at the front of received_
  bool peer_ended_ = false;
  bool open_ = true;
};

}  // namespace gitops::tunnel
