// WebSocket frames from anywhere. What comes out must not depend on how the bytes are split, every
// limit holds, text is UTF-8, and what the encoder writes is read again as it was.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/core/encoding.hpp"
#include "common/http/websocket_codec.hpp"

namespace {

using namespace gitops;
using namespace gitops::http::websocket;

constexpr std::uint64_t kMaxFrame = 300;
constexpr std::uint64_t kMaxMessage = 500;
constexpr std::size_t kMaxHeld = 131;  // a control frame but for its last byte

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Feeds `text` in pieces whose sizes come from `sizes` (everything at once when empty) and
// describes what came out.
std::string transcript(std::string_view text, std::string_view sizes,
                       const DecoderOptions& options) {
  Decoder decoder(options);
  std::string out;
  std::string message;
  std::string buffer;
  std::size_t turn = 0;
  while (!text.empty()) {
    std::size_t size = text.size();
    if (!sizes.empty()) {
      size = std::min<std::size_t>(
          size, 1 + static_cast<unsigned char>(sizes[turn++ % sizes.size()]) % 32);
    }
    buffer += text.substr(0, size);
    text.remove_prefix(size);
    while (true) {
      const auto step = decoder.next(buffer);
      if (!step) {
        // Where in a message an error shows depends on the split when its text is wrong: left out.
        require(close_code_of(step.error()) != kCloseNoCode);
        return out + "!" + std::string(to_string(step.error().code));
      }
      require(step->consumed <= buffer.size());
      require(step->payload.empty() ||
              (step->payload.data() >= buffer.data() &&
               step->payload.data() + step->payload.size() <= buffer.data() + step->consumed));
      const std::string payload(step->payload);
      const auto event = step->event;
      buffer.erase(0, step->consumed);
      if (event == DecodeStep::Event::more) {
        require(buffer.size() <= kMaxHeld);
        break;
      }
      if (event == DecodeStep::Event::data) {
        message += payload;
        require(message.size() <= kMaxMessage);
        if (step->end_of_message) {
          require(!step->is_text || options.text_check == TextCheck::none || is_utf8(message));
          out += (step->is_text ? "t[" : "b[") + message + "]";
          message.clear();
        }
      } else {
        require(payload.size() <= kMaxControlPayload);
        out += "c" + std::to_string(static_cast<int>(event)) + "[" + payload + "]";
        if (event == DecodeStep::Event::close) {
          require(step->close_code == kCloseNoCode || is_sendable_close_code(step->close_code));
          out += std::to_string(step->close_code);
        }
      }
    }
  }
  return out;
}

void check_round_trip(std::string_view payload, MaskKey key, std::string_view sizes) {
  std::string frames;
  append_frame(frames, Opcode::binary, payload.substr(0, payload.size() / 2), key, false);
  append_frame(frames, Opcode::ping, "?", key);
  append_frame(frames, Opcode::continuation, payload.substr(payload.size() / 2), key);
  append_frame(frames, Opcode::close, close_payload(kCloseGoingAway, payload), key);
  const auto read = transcript(frames, sizes, {.role = Role::server});
  require(read.starts_with("c2[?]b[" + std::string(payload) + "]c4["));
  require(read.ends_with("]1001"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first bytes choose the options and the split.
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  if (all.size() < 5) return 0;
  const auto choice = static_cast<unsigned char>(all[0]);
  const auto sizes = all.substr(1, 4);
  const auto text = all.substr(5);
  const DecoderOptions options{
      .role = (choice & 1U) != 0 ? Role::server : Role::client,
      .text_check = (choice & 2U) != 0 ? TextCheck::utf8 : TextCheck::none,
      .max_frame = kMaxFrame,
      .max_message = kMaxMessage,
  };
  require(transcript(text, {}, options) == transcript(text, sizes, options));
  if (text.size() <= kMaxMessage) {
    check_round_trip(text, {sizes[0], sizes[1], sizes[2], sizes[3]}, sizes);
  }
  return 0;
}
