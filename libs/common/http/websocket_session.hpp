#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/core/time.hpp"
#include "common/http/websocket_codec.hpp"

namespace gitops::http::websocket {

struct Message {
  bool is_text = true;
  std::string data = {};

  bool operator==(const Message&) const = default;
};

struct SessionOptions {
  Role role = Role::server;
  std::size_t max_message = 1024 * 1024;  // of a received message; more closes with 1009
  // A ping is sent after the peer was silent for ping_interval; without an answer within
  // ping_timeout, the session ends.
  std::chrono::milliseconds ping_interval{30'000};
  std::chrono::milliseconds ping_timeout{10'000};
  std::chrono::milliseconds close_timeout{5'000};  // for the peer's answer to a close frame
};

// How a WebSocket ended.
struct Ending {
  std::uint16_t code = kCloseAbnormal;  // the peer's, or ours when we closed it
  std::string reason = {};

  bool operator==(const Ending&) const = default;
};

// One end of an open WebSocket without its connection: messages, pings and the closing handshake
// (RFC 6455 section 7). Bytes, time and mask keys come in, bytes to send and messages come out.
class Session {
 public:
  // `draw_key` returns an unpredictable key; it is not called for servers.
  Session(SessionOptions options, std::function<MaskKey()> draw_key, Clock::time_point now);

  // Looks at the bytes that follow those consumed so far; the number of bytes to drop, at most 131
  // less than given. Complete messages are appended to `messages`. They are looked at until the
  // end.
  std::size_t receive(std::span<char> bytes, Clock::time_point now, std::deque<Message>& messages);
  // Resets the silence of the peer: nothing was read until now.
  void excuse(Clock::time_point now);
  // The connection ended, or cannot be used any more.
  void lose(std::string_view why);

  // These do nothing once a close frame was sent or the session ended.
  void send(Opcode opcode, std::string_view payload);
  // Sends a close frame: nothing can be sent after it, and the session ends with the peer's.
  void close(std::uint16_t code, std::string_view reason, Clock::time_point now);

  // Sends a ping, or ends the session of a silent peer. Call it at due() or later.
  void tick(Clock::time_point now);
  [[nodiscard]] Clock::time_point due() const;

  // Bytes to send; the caller removes them from the string.
  [[nodiscard]] std::string& output() { return output_; }
  [[nodiscard]] const std::string& output() const { return output_; }
  // False after close() and at the end.
  [[nodiscard]] bool is_open() const { return !close_sent_at_ && !ending_; }
  // Set at the end; the connection is to be closed when output() was sent.
  [[nodiscard]] const std::optional<Ending>& ending() const { return ending_; }

 private:
  void append(Opcode opcode, std::string_view payload);
  void end(std::uint16_t code, std::string_view reason);

  SessionOptions options_;
  std::function<MaskKey()> draw_key_;
  Decoder decoder_;
  std::string message_;  // parts so far
  std::string output_;
  std::optional<Clock::time_point> close_sent_at_;
  std::optional<Ending> ending_;
  Clock::time_point heard_;  // the last byte of the peer
  std::optional<Clock::time_point> pinged_;
};

}  // namespace gitops::http::websocket
