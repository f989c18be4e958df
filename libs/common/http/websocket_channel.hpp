#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/http/upgraded.hpp"
#include "common/http/websocket_codec.hpp"
#include "common/net/channel.hpp"

namespace gitops::http {

// The payload of an open WebSocket's messages as one stream of bytes, for a protocol that only
// travels in WebSocket: the borders and types of messages mean nothing, and text is not checked.
// Owns the channel below. TLS or another channel may stand on it.
//
// A close frame with code 1000, 1001 or none is the end of the stream; any other code, and an end
// without a close frame, is `lost`. Pings are answered; of those that one read meets, the last. The
// peer's silence is not watched: the protocol on top has its own signs of life.
class WebSocketChannel : public net::Channel {
 public:
  struct Options {
    websocket::Role role = websocket::Role::server;
    websocket::Opcode opcode = websocket::Opcode::binary;  // of the frames that are sent
    // Returns an unpredictable masking key; only called for clients.
    std::function<websocket::MaskKey()> draw_key = {};
  };

  // `connection` has switched to WebSocket.
  WebSocketChannel(Upgraded connection, Options options);
  ~WebSocketChannel() override;

  [[nodiscard]] bool is_open() const override { return below_->is_open(); }
  // Sends a close frame with code 1000, when the channel below has room for it at once. A client
  // leaves the end of the connection to the server (RFC 6455 section 7.1.1).
  void shutdown_send() override;
  void close() override;
  void abort() override;
  net::Transfer try_read(std::span<char> room) override;
  // As with TLS, an attempt that is repeated after it would have blocked begins with the same
  // bytes: they may stand in a frame that is partly sent.
  net::Transfer try_write(std::span<const asio::const_buffer> buffers) override;

 private:
  net::Transfer read_below(std::span<char> room);
  Result<std::size_t> decode(std::span<char> raw, std::span<char> room);
  net::Transfer refused(const Error& error);
  net::Transfer ended();
  [[nodiscard]] Error closed_by_peer() const;
  net::Transfer::What flush();
  void send_control(websocket::Opcode opcode, std::string_view payload);
  void send_close(std::uint16_t code);
  [[nodiscard]] std::optional<websocket::MaskKey> key();

  // Size limit of an incomplete frame head or control frame: less than 2 + 4 + 125 bytes.
  static constexpr std::size_t kMaxRest = 131;

  Options options_;
  std::unique_ptr<net::Channel> below_;
  websocket::Decoder decoder_;
  std::string received_;  // came with the handshake
  std::array<char, kMaxRest> rest_{};
  std::size_t rest_size_ = 0;
  std::string sending_;           // frames of which a part is not sent
  std::size_t sending_size_ = 0;  // payload bytes of the write that they belong to
  std::string control_;           // a pong or a close frame that comes after `sending_`
  bool close_sent_ = false;
  bool close_received_ = false;
  std::uint16_t close_code_ = websocket::kCloseNoCode;
  std::string close_reason_;
};

}  // namespace gitops::http
