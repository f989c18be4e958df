#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

// WebSocket frames (RFC 6455) as bytes: no socket, no clock, no randomness. websocket_handshake.hpp
// has the handshake; websocket.hpp uses both on a connection.
namespace gitops::http::websocket {

// Side of the connection. A client masks its frames, a server does not.
enum class Role : std::uint8_t { client, server };

enum class Opcode : std::uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10,
};

// Close codes (RFC 6455 section 7.4.1). 3000 to 4999 belong to applications.
inline constexpr std::uint16_t kCloseNormal = 1000;
inline constexpr std::uint16_t kCloseGoingAway = 1001;
inline constexpr std::uint16_t kCloseProtocolError = 1002;
inline constexpr std::uint16_t kCloseUnsupportedData = 1003;
inline constexpr std::uint16_t kCloseNoCode = 1005;    // represents a close frame without a code
inline constexpr std::uint16_t kCloseAbnormal = 1006;  // represents an end without a close frame
inline constexpr std::uint16_t kCloseInvalidPayload = 1007;
inline constexpr std::uint16_t kClosePolicyViolation = 1008;
inline constexpr std::uint16_t kCloseTooBig = 1009;
inline constexpr std::uint16_t kCloseInternalError = 1011;
inline constexpr std::uint16_t kCloseTryAgainLater = 1013;

// Returns whether the code may be sent in a close frame.
bool is_sendable_close_code(std::uint16_t code);

inline constexpr std::size_t kMaxControlPayload = 125;

// Masking key: its four bytes in the order of sending. RFC 6455 section 5.3 requires unpredictable
// keys; the caller draws them.
using MaskKey = std::array<char, 4>;

// XORs `data`, which begins at `offset` of a frame's payload, with the key. Masking and unmasking
// are the same operation.
void apply_mask(std::span<char> data, MaskKey key, std::uint64_t offset = 0);

// Head of a frame: 2 to 14 bytes.
class FrameHead {
 public:
  // `key`: set by clients only.
  FrameHead(Opcode opcode, bool final, std::uint64_t payload_size, std::optional<MaskKey> key);
  [[nodiscard]] std::string_view bytes() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, 14> bytes_;
  std::size_t size_ = 0;
};

// Appends a whole frame. Masks the payload if a key is given.
void append_frame(std::string& out, Opcode opcode, std::string_view payload,
                  std::optional<MaskKey> key, bool final = true);

// Returns the payload of a close frame. Truncates a long reason between two characters. With
// kCloseNoCode the payload is empty.
std::string close_payload(std::uint16_t code, std::string_view reason);

// Check of the text in text messages and in reasons of close frames.
enum class TextCheck : std::uint8_t {
  utf8,  // only UTF-8, as RFC 6455 requires
  none,  // any bytes: older tunnel peers send binary data in text frames
};

inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

struct DecoderOptions {
  Role role = Role::server;  // of this side; the peer has the other role
  TextCheck text_check = TextCheck::utf8;
  std::uint64_t max_frame = kUnlimited;    // payload bytes
  std::uint64_t max_message = kUnlimited;  // payload bytes of all frames of a message
};

// Result of decoding the next bytes. `payload` is a slice of the input, unmasked in place.
struct DecodeStep {
  enum class Event {
    more,  // incomplete: call again with the unconsumed bytes and at least one more
    data,  // a part of a message: any number of bytes, none for an empty message
    ping,  // respond with a pong of the same payload
    pong,
    close,  // the last frame; all bytes after it are consumed unread
  };
  Event event = Event::more;
  std::size_t consumed = 0;
  std::string_view payload = {};  // data, ping, pong; the reason of close
  bool is_text = false;           // data: part of a text message
  bool end_of_message = false;    // data: last part of its message
  std::uint16_t close_code = kCloseNoCode;
};

// Decodes the frames of the peer. Returns data as it arrives, frame by frame or in parts of a
// frame, without copies. Returns control frames as a whole, so the caller's buffer must hold 131
// bytes.
//
// Every violation of RFC 6455 is an error: wrong masking, reserved bits and opcodes, fragmented or
// long control frames, lengths not in their shortest form, frames out of order, forbidden close
// codes, and invalid UTF-8 in text (at its first wrong byte). After an error the decoder is
// unusable; close_code_of() returns the code to close with.
class Decoder {
 public:
  explicit Decoder(DecoderOptions options) : options_(options) {}

  // Decodes the bytes that follow those consumed so far, and unmasks the consumed ones in place.
  // Errors: protocol, invalid_data (not UTF-8), too_large (a limit).
  Result<DecodeStep> next(std::span<char> input);

 private:
  // Validates UTF-8 across the boundaries of frames.
  class Utf8 {
   public:
    bool feed(std::string_view bytes);  // false: no longer UTF-8
    [[nodiscard]] bool complete() const { return missing_ == 0; }

   private:
    int missing_ = 0;           // remaining bytes of the current character
    unsigned char low_ = 0x80;  // range of its next byte
    unsigned char high_ = 0xbf;
  };

  Result<bool> read_head(std::span<char> input, std::size_t& consumed);
  Result<DecodeStep> control_frame(std::span<char> input, std::size_t consumed);

  DecoderOptions options_;
  bool closed_ = false;
  bool in_frame_ = false;
  // State of the current frame.
  Opcode opcode_ = Opcode::continuation;
  bool final_ = false;
  MaskKey key_{};
  std::uint64_t offset_ = 0;  // payload bytes seen
  std::uint64_t left_ = 0;    // payload bytes to come
  // State of the current message.
  bool in_message_ = false;
  bool is_text_ = false;
  std::uint64_t message_size_ = 0;
  Utf8 utf8_;
};

// Returns the close code for an error of a Decoder.
std::uint16_t close_code_of(const Error& error);

}  // namespace gitops::http::websocket
