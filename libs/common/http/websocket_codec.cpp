#include "common/http/websocket_codec.hpp"

#include <algorithm>
#include <cstring>

#include "common/core/encoding.hpp"

namespace gitops::http::websocket {
namespace {

constexpr unsigned kFinal = 0x80;
constexpr unsigned kReserved = 0x70;
constexpr unsigned kOpcode = 0x0f;
constexpr unsigned kMasked = 0x80;
constexpr std::uint64_t kMaxShort = 125;
constexpr unsigned kTwoBytes = 126;
constexpr unsigned kEightBytes = 127;

unsigned byte_at(std::span<const char> bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

std::uint64_t big_endian(std::span<const char> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value = value << 8U | byte_at(bytes, i);
  return value;
}

bool is_control(Opcode opcode) {
  return opcode >= Opcode::close;
}

// Returns the key as it applies to a payload from `offset` on, twice in a row.
std::uint64_t mask_word(MaskKey key, std::uint64_t offset) {
  std::array<char, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = key[(offset + i) % key.size()];
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

std::unexpected<Error> broken(const char* what) {
  return fail(ErrorCode::protocol, std::string("malformed WebSocket frame: ") + what);
}

std::unexpected<Error> not_utf8() {
  return fail(ErrorCode::invalid_data, "a WebSocket text is not UTF-8");
}

}  // namespace

bool is_sendable_close_code(std::uint16_t code) {
  if (code >= 3000) return code <= 4999;
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
}

void apply_mask(std::span<char> data, MaskKey key, std::uint64_t offset) {
  const std::uint64_t mask = mask_word(key, offset);
  char* at = data.data();
  std::size_t left = data.size();
  for (; left >= sizeof mask; left -= sizeof mask, at += sizeof mask) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    word ^= mask;
    std::memcpy(at, &word, sizeof word);
  }
  std::array<char, sizeof mask> rest;
  std::memcpy(rest.data(), &mask, sizeof mask);
  for (std::size_t i = 0; i < left; ++i) at[i] = static_cast<char>(at[i] ^ rest[i]);
}

FrameHead::FrameHead(Opcode opcode, bool final, std::uint64_t payload_size,
                     std::optional<MaskKey> key) {
  const auto put = [this](std::uint64_t byte) {
    bytes_[size_++] = static_cast<char>(byte & 0xffU);
  };
  const unsigned masked = key ? kMasked : 0;
  put((final ? kFinal : 0U) | static_cast<unsigned>(opcode));
  if (payload_size <= kMaxShort) {
    put(masked | payload_size);
  } else {
    const bool two = payload_size <= 0xffff;
    put(masked | (two ? kTwoBytes : kEightBytes));
    for (unsigned shift = two ? 16 : 64; shift > 0; shift -= 8) put(payload_size >> (shift - 8));
  }
  if (key) {
    for (const char byte : *key) bytes_[size_++] = byte;
  }
}

void append_frame(std::string& out, Opcode opcode, std::string_view payload,
                  std::optional<MaskKey> key, bool final) {
  out.append(FrameHead(opcode, final, payload.size(), key).bytes());
  const std::size_t start = out.size();
  out.append(payload);
  if (key) apply_mask(std::span(out).subspan(start), *key);
}

std::string close_payload(std::uint16_t code, std::string_view reason) {
  if (code == kCloseNoCode) return {};
  std::string payload{static_cast<char>(code >> 8U), static_cast<char>(code & 0xffU)};
  std::size_t size = 0;
  while (size < reason.size()) {
    const std::size_t length = utf8_length(reason.substr(size));
    if (length == 0 || payload.size() + size + length > kMaxControlPayload) break;
    size += length;
  }
  payload.append(reason.substr(0, size));
  return payload;
}

bool Decoder::Utf8::feed(std::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  while (at != end) {
    if (missing_ == 0) {
      // Fast path: ASCII, eight characters at a time.
      constexpr std::uint64_t kHighBits = 0x8080'8080'8080'8080;
      std::uint64_t word = 0;
      while (end - at >= 8) {
        std::memcpy(&word, at, sizeof word);
        if ((word & kHighBits) != 0) break;
        at += 8;
      }
      if (at == end) break;
    }
    const auto byte = static_cast<unsigned char>(*at++);
    if (missing_ > 0) {
      if (byte < low_ || byte > high_) return false;
      --missing_;
      low_ = 0x80;
      high_ = 0xbf;
    } else if (byte >= 0x80) {
      if (byte < 0xc2 || byte > 0xf4) return false;
      missing_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
      // Excludes overlong forms, surrogates, and anything above U+10FFFF.
      if (byte == 0xe0) low_ = 0xa0;
      if (byte == 0xed) high_ = 0x9f;
      if (byte == 0xf0) low_ = 0x90;
      if (byte == 0xf4) high_ = 0x8f;
    }
  }
  return true;
}

// Returns true after a whole head, and sets in_frame_. `consumed` is the size of the head.
Result<bool> Decoder::read_head(std::span<char> input, std::size_t& consumed) {
  if (input.empty()) return false;
  const unsigned first = byte_at(input, 0);
  if ((first & kReserved) != 0) return broken("a reserved bit is set");
  const auto opcode = static_cast<Opcode>(first & kOpcode);
  const bool final = (first & kFinal) != 0;
  switch (opcode) {
    case Opcode::continuation:
      if (!in_message_) return broken("a continuation without a message");
      break;
    case Opcode::text:
    case Opcode::binary:
      if (in_message_) return broken("a new message inside of another");
      break;
    case Opcode::close:
    case Opcode::ping:
    case Opcode::pong:
      if (!final) return broken("a control frame is fragmented");
      break;
    default:
      return broken("the opcode is unknown");
  }
  if (input.size() < 2) return false;
  const unsigned second = byte_at(input, 1);
  const bool masked = (second & kMasked) != 0;
  if (masked != (options_.role == Role::server)) {
    return broken(masked ? "a server must not mask" : "a client must mask");
  }
  std::uint64_t length = second & ~kMasked;
  std::size_t size = 2;
  if (length > kMaxShort) {
    if (is_control(opcode)) return broken("a control frame is too long");
    const std::size_t bytes = length == kTwoBytes ? 2 : 8;
    if (input.size() < size + bytes) return false;
    length = big_endian(input.subspan(size, bytes));
    if (length <= (bytes == 2 ? kMaxShort : 0xffff) || length >> 63U != 0) {
      return broken("the length is not in its shortest form");
    }
    size += bytes;
  }
  if (masked) {
    if (input.size() < size + key_.size()) return false;
    std::copy_n(input.begin() + static_cast<std::ptrdiff_t>(size), key_.size(), key_.begin());
    size += key_.size();
  }
  if (!is_control(opcode)) {
    const std::uint64_t before = in_message_ ? message_size_ : 0;
    if (length > options_.max_frame || length > options_.max_message - before) {
      return fail(ErrorCode::too_large, "a WebSocket message is larger than allowed");
    }
    message_size_ = before + length;
    if (!in_message_) {
      is_text_ = opcode == Opcode::text;
      utf8_ = {};
    }
    in_message_ = true;
  }
  opcode_ = opcode;
  final_ = final;
  offset_ = 0;
  left_ = length;
  in_frame_ = true;
  consumed += size;
  return true;
}

// Decodes a ping, pong or close after its head, when its whole payload is there.
Result<DecodeStep> Decoder::control_frame(std::span<char> input, std::size_t consumed) {
  if (input.size() < left_) return DecodeStep{.consumed = consumed};
  const auto bytes = input.first(static_cast<std::size_t>(left_));
  if (options_.role == Role::server) apply_mask(bytes, key_);
  in_frame_ = false;
  DecodeStep step{.consumed = consumed + bytes.size(), .payload = {bytes.data(), bytes.size()}};
  if (opcode_ != Opcode::close) {
    step.event = opcode_ == Opcode::ping ? DecodeStep::Event::ping : DecodeStep::Event::pong;
    return step;
  }
  step.event = DecodeStep::Event::close;
  closed_ = true;
  if (bytes.empty()) return step;
  if (bytes.size() == 1) return broken("half of a close code");
  step.close_code = static_cast<std::uint16_t>(big_endian(bytes.first(2)));
  if (!is_sendable_close_code(step.close_code)) return broken("the close code is forbidden");
  step.payload.remove_prefix(2);
  if (options_.text_check == TextCheck::utf8) {
    Utf8 utf8;
    if (!utf8.feed(step.payload) || !utf8.complete()) return not_utf8();
  }
  return step;
}

Result<DecodeStep> Decoder::next(std::span<char> input) {
  if (closed_) return DecodeStep{.consumed = input.size()};
  std::size_t consumed = 0;
  while (true) {
    if (!in_frame_) {
      const auto read = read_head(input.subspan(consumed), consumed);
      if (!read) return std::unexpected(read.error());
      if (!*read) return DecodeStep{.consumed = consumed};
    }
    const auto rest = input.subspan(consumed);
    if (is_control(opcode_)) return control_frame(rest, consumed);
    const auto part =
        rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(left_, rest.size())));
    if (part.empty() && left_ > 0) return DecodeStep{.consumed = consumed};
    if (options_.role == Role::server) apply_mask(part, key_, offset_);
    offset_ += part.size();
    left_ -= part.size();
    consumed += part.size();
    const std::string_view payload(part.data(), part.size());
    const bool checked = is_text_ && options_.text_check == TextCheck::utf8;
    if (checked && !utf8_.feed(payload)) return not_utf8();
    in_frame_ = left_ > 0;
    const bool ends = !in_frame_ && final_;
    if (ends) {
      if (checked && !utf8_.complete()) return not_utf8();
      in_message_ = false;
    }
    // Skips an empty frame in the middle of a message.
    if (part.empty() && !ends) continue;
    return DecodeStep{.event = DecodeStep::Event::data,
                      .consumed = consumed,
                      .payload = payload,
                      .is_text = is_text_,
                      .end_of_message = ends};
  }
}

std::uint16_t close_code_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::too_large:
      return kCloseTooBig;
    case ErrorCode::invalid_data:
      return kCloseInvalidPayload;
    default:
      return kCloseProtocolError;
  }
}

}  // namespace gitops::http::websocket
