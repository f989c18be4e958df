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
  std::size_t max_message = 1024 * 1024;  // bytes of a received message; more closes with 1009
  // Interval of silence after which a ping is sent, and time limit for its pong, after which the
  // session ends.
  std::chrono::milliseconds ping_interval{30'000};
  std::chrono::milliseconds ping_timeout{10'000};
  std::chrono::milliseconds close_timeout{5'000};  // for the peer's close frame
};

// End of a WebSocket.
struct Ending {
  std::uint16_t code = kCloseAbnormal;  // the peer's, or ours if we closed it
  std::string reason = {};

  bool operator==(const Ending&) const = default;
};

// One end of an open WebSocket without I/O: messages, pings and the closing handshake (RFC 6455
// section 7). Takes bytes, time and mask keys; returns bytes to send and messages.
class Session {
 public:
  // `draw_key` returns an unpredictable key; called for clients only.
  Session(SessionOptions options, std::function<MaskKey()> draw_key, Clock::time_point now);

  // Processes the bytes that follow those consumed so far and appends complete messages to
  // `messages`. Returns the number of consumed bytes, at most 131 less than given. Processes no
  // bytes after the end.
  std::size_t receive(std::span<char> bytes, Clock::time_point now, std::deque<Message>& messages);
  // Restarts the measurement of silence, after a time without reads.
  void excuse(Clock::time_point now);
  // Restarts the time limits for a ping and a close frame, after all output was sent.
  void sent(Clock::time_point now);
  // Ends the session after the loss of its connection.
  void lose(std::string_view why);

  // Sends a frame. This and close() do nothing after a close frame or the end.
  void send(Opcode opcode, std::string_view payload);
  // Sends a close frame. Nothing can be sent after it, and the session ends with the peer's close
  // frame.
  void close(std::uint16_t code, std::string_view reason, Clock::time_point now);

  // Sends a due ping, or ends the session of a silent peer. Call it at due() or later.
  void tick(Clock::time_point now);
  [[nodiscard]] Clock::time_point due() const;

  // Bytes to send; the caller removes sent bytes from the string.
  [[nodiscard]] std::string& output() { return output_; }
  [[nodiscard]] const std::string& output() const { return output_; }
  // Returns false after close() and at the end.
  [[nodiscard]] bool is_open() const { return !close_sent_at_ && !ending_; }
  // Set at the end; close the connection after sending output().
  [[nodiscard]] const std::optional<Ending>& ending() const { return ending_; }

 private:
  void append(Opcode opcode, std::string_view payload);
  void end(std::uint16_t code, std::string_view reason);

  SessionOptions options_;
  std::function<MaskKey()> draw_key_;
  Decoder decoder_;
  std::string message_;  // parts received so far
  std::string output_;
  std::optional<Clock::time_point> close_sent_at_;
  std::optional<Ending> ending_;
  Clock::time_point heard_;  // the last byte of the peer
  std::optional<Clock::time_point> pinged_;
};

}  // namespace gitops::http::websocket
