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

// Channel that carries a stream of bytes in the messages of a WebSocket. Ignores the boundaries and
// types of messages and does not validate text. Owns the channel below. TLS or another channel may
// be used on top.
//
// A close frame with code 1000, 1001 or none is the end of the stream. Any other code, and an end
// without a close frame, is `lost`. Responds to pings; if one read meets several, to the last. Does
// not check for a silent peer: the protocol on top has its own keep-alive.
class WebSocketChannel : public net::Channel {
 public:
  struct Options {
    websocket::Role role = websocket::Role::server;
    websocket::Opcode opcode = websocket::Opcode::binary;  // of sent frames
    // Returns an unpredictable masking key; called for clients only.
    std::function<websocket::MaskKey()> draw_key = {};
  };

  // `connection` has switched to WebSocket.
  WebSocketChannel(Upgraded connection, Options options);
  ~WebSocketChannel() override;

  [[nodiscard]] bool is_open() const override { return below_->is_open(); }
  // Sends a close frame with code 1000 if the channel below has room for it. A client lets the
  // server end the connection (RFC 6455 section 7.1.1).
  void shutdown_send() override;
  void close() override;
  void abort() override;
  net::Transfer try_read(std::span<char> room) override;
  // Writes as TLS does: a retry after a write that would have blocked must begin with the same
  // bytes, which may be part of a partly sent frame.
  net::Transfer try_write(std::span<const asio::const_buffer> buffers) override;

 private:
  net::Transfer read_below(std::span<char> room);
  Result<std::size_t> decode(std::span<char> raw, std::span<char> room);
  net::Transfer refused(const Error& error);
  net::Transfer ended();
  [[nodiscard]] Error closed_by_peer() const;
  net::Transfer::What flush();
  net::Transfer::What flush(std::string& out);
  void send_control(websocket::Opcode opcode, std::string_view payload);
  void send_close(std::uint16_t code);
  [[nodiscard]] std::optional<websocket::MaskKey> key();

  // Size limit of an incomplete frame head or control frame: less than 2 + 4 + 125 bytes.
  static constexpr std::size_t kMaxRest = 131;

  Options options_;
  std::unique_ptr<net::Channel> below_;
  websocket::Decoder decoder_;
  std::string received_;  // bytes received with the handshake
  std::array<char, kMaxRest> rest_{};
  std::size_t rest_size_ = 0;
  std::string sending_;            // partly sent frames
  std::size_t sending_size_ = 0;   // payload bytes of the write that sending_ belongs to
  std::string control_;            // a pong or a close frame to send after `sending_`
  bool control_is_begun_ = false;  // a part of control_ may have been sent
  std::string next_control_;       // to send after a control_ that was begun
  bool close_sent_ = false;
  bool close_received_ = false;
  std::uint16_t close_code_ = websocket::kCloseNoCode;
  std::string close_reason_;
};

}  // namespace gitops::http
