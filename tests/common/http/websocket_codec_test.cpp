#include "common/http/websocket_codec.hpp"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include <gmock/gmock.h>

namespace gitops::http::websocket {
namespace {

using testing::EndsWith;

constexpr MaskKey kKey{'\x37', '\xfa', '\x21', '\x3d'};  // of RFC 6455 section 5.7

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out.push_back(static_cast<char>(value));
  return out;
}

std::string masked(Opcode opcode, std::string_view payload, bool final = true) {
  std::string out;
  append_frame(out, opcode, payload, kKey, final);
  return out;
}

std::string plain(Opcode opcode, std::string_view payload, bool final = true) {
  std::string out;
  append_frame(out, opcode, payload, std::nullopt, final);
  return out;
}

// What comes out of `text` when it arrives in pieces of `piece` bytes: "text(abc)", "binary(...)",
// "ping(x)", "close 1000(bye)", "error too_large".
std::string transcript(std::string text, const DecoderOptions& options, std::size_t piece) {
  Decoder decoder(options);
  std::string out;
  std::string message;
  std::size_t consumed = 0;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::size_t received = std::min(text.size(), at + piece);
    while (true) {
      const auto step = decoder.next(std::span(text).subspan(consumed, received - consumed));
      if (!step) return out + "error " + std::string(to_string(step.error().code));
      switch (step->event) {
        case DecodeStep::Event::more:
          break;
        case DecodeStep::Event::data:
          message += step->payload;
          if (step->end_of_message) {
            out += (step->is_text ? "text(" : "binary(") + message + ")";
            message.clear();
          }
          break;
        case DecodeStep::Event::ping:
          out += "ping(" + std::string(step->payload) + ")";
          break;
        case DecodeStep::Event::pong:
          out += "pong(" + std::string(step->payload) + ")";
          break;
        case DecodeStep::Event::close:
          out +=
              "close " + std::to_string(step->close_code) + "(" + std::string(step->payload) + ")";
          break;
      }
      consumed += step->consumed;
      if (step->event == DecodeStep::Event::more) break;
    }
    EXPECT_LE(received - consumed, 131) << "the decoder waits for more than a control frame";
  }
  if (!message.empty()) out += "part(" + message + ")";
  return out;
}

// The outcome, which must not depend on how the bytes arrive.
std::string decode(const std::string& text, const DecoderOptions& options) {
  std::string whole = transcript(text, options, text.size());
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 13U}) {
    EXPECT_EQ(transcript(text, options, piece), whole) << "in pieces of " << piece;
  }
  return whole;
}

std::string at_server(const std::string& text) {
  return decode(text, {.role = Role::server});
}
std::string at_client(const std::string& text) {
  return decode(text, {.role = Role::client});
}

TEST(WebSocketDecoder, ReadsTheExamplesOfTheRfc) {
  const std::string hello = bytes({0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f});
  EXPECT_EQ(at_client(hello), "text(Hello)");
  EXPECT_EQ(at_server(bytes({0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58})),
            "text(Hello)");
  EXPECT_EQ(at_client(bytes({0x01, 0x03, 0x48, 0x65, 0x6c}) + bytes({0x80, 0x02, 0x6c, 0x6f})),
            "text(Hello)");
  EXPECT_EQ(at_client(bytes({0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f})), "ping(Hello)");
  EXPECT_EQ(at_server(bytes({0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58})),
            "pong(Hello)");
  EXPECT_EQ(at_client(bytes({0x82, 0x7e, 0x01, 0x00}) + std::string(256, 'x')),
            "binary(" + std::string(256, 'x') + ")");
  EXPECT_EQ(at_client(bytes({0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0}) + std::string(65536, 'x')),
            "binary(" + std::string(65536, 'x') + ")");
}

TEST(WebSocketEncoder, WritesTheExamplesOfTheRfc) {
  EXPECT_EQ(plain(Opcode::text, "Hello"), bytes({0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f}));
  EXPECT_EQ(masked(Opcode::text, "Hello"),
            bytes({0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58}));
  EXPECT_EQ(plain(Opcode::text, "Hel", false), bytes({0x01, 0x03, 0x48, 0x65, 0x6c}));
  EXPECT_EQ(FrameHead(Opcode::binary, true, 125, std::nullopt).bytes(), bytes({0x82, 125}));
  EXPECT_EQ(FrameHead(Opcode::binary, true, 126, std::nullopt).bytes(),
            bytes({0x82, 126, 0x00, 126}));
  EXPECT_EQ(FrameHead(Opcode::binary, true, 65535, std::nullopt).bytes(),
            bytes({0x82, 126, 0xff, 0xff}));
  EXPECT_EQ(FrameHead(Opcode::binary, true, 65536, std::nullopt).bytes(),
            bytes({0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(FrameHead(Opcode::binary, true, 65536, kKey).bytes().size(), 14U);
}

TEST(WebSocketDecoder, ReadsWhatTheEncoderWrites) {
  std::string all;
  std::string expected;
  for (const std::size_t size :
       {0U, 1U, 7U, 8U, 9U, 124U, 125U, 126U, 127U, 1000U, 65535U, 65536U, 70000U}) {
    std::string payload;
    for (std::size_t i = 0; i < size; ++i) payload.push_back(static_cast<char>(i * 7));
    all += masked(Opcode::binary, payload);
    expected += "binary(" + payload + ")";
  }
  EXPECT_EQ(at_server(all), expected);
}

TEST(WebSocketMask, WorksFromAnyOffsetAndAlignment) {
  std::string text;
  for (int i = 0; i < 200; ++i) text.push_back(static_cast<char>(i));
  std::string expected = text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    expected[i] = static_cast<char>(text[i] ^ kKey[i % 4]);
  }
  for (std::size_t begin = 0; begin < 20; ++begin) {
    for (std::size_t size = 0; size < 40; ++size) {
      std::string part = text;
      apply_mask(std::span(part).subspan(begin, size), kKey, begin);
      EXPECT_EQ(part,
                text.substr(0, begin) + expected.substr(begin, size) + text.substr(begin + size));
    }
  }
}

TEST(WebSocketDecoder, ReadsControlFramesInsideOfMessages) {
  EXPECT_EQ(at_server(masked(Opcode::text, "a", false) + masked(Opcode::ping, "p") +
                      masked(Opcode::continuation, "b", false) + masked(Opcode::pong, "") +
                      masked(Opcode::continuation, "c") + masked(Opcode::binary, "d")),
            "ping(p)pong()text(abc)binary(d)");
}

TEST(WebSocketDecoder, ReadsEmptyFrames) {
  EXPECT_EQ(at_server(masked(Opcode::text, "")), "text()");
  EXPECT_EQ(at_server(masked(Opcode::text, "", false) + masked(Opcode::continuation, "", false) +
                      masked(Opcode::continuation, "")),
            "text()");
  EXPECT_EQ(at_server(masked(Opcode::text, "a", false) + masked(Opcode::continuation, "")),
            "text(a)");
}

TEST(WebSocketDecoder, ReadsTheEnd) {
  EXPECT_EQ(at_server(masked(Opcode::close, "")), "close 1005()");
  EXPECT_EQ(at_server(masked(Opcode::close, close_payload(1000, "bye"))), "close 1000(bye)");
  EXPECT_EQ(at_server(masked(Opcode::close, close_payload(4401, "")) + "whatever comes then"),
            "close 4401()");
}

TEST(WebSocketDecoder, RefusesForbiddenCloseFrames) {
  EXPECT_EQ(at_server(masked(Opcode::close, "x")), "error protocol");
  for (const int code : {0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535}) {
    EXPECT_EQ(at_server(masked(Opcode::close, bytes({code >> 8, code & 0xff}))), "error protocol")
        << code;
  }
  for (const int code : {1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 3999, 4000, 4999}) {
    EXPECT_EQ(at_server(masked(Opcode::close, bytes({code >> 8, code & 0xff}))),
              "close " + std::to_string(code) + "()");
  }
  EXPECT_EQ(at_server(masked(Opcode::close, bytes({3, 0xe8, 0xff}))), "error invalid_data");
}

TEST(WebSocketDecoder, RefusesBrokenFrames) {
  const std::string empty_key(4, '\0');
  for (const auto& [what, text] : std::vector<std::pair<std::string, std::string>>{
           {"reserved bit 1", bytes({0xc1, 0x80}) + empty_key},
           {"reserved bit 3", bytes({0x91, 0x80}) + empty_key},
           {"opcode 3", bytes({0x83, 0x80}) + empty_key},
           {"opcode 7", bytes({0x87, 0x80}) + empty_key},
           {"opcode 11", bytes({0x8b, 0x80}) + empty_key},
           {"opcode 15", bytes({0x8f, 0x80}) + empty_key},
           {"not masked", plain(Opcode::text, "x")},
           {"fragmented ping", masked(Opcode::ping, "", false)},
           {"fragmented close", masked(Opcode::close, "", false)},
           {"long ping", masked(Opcode::ping, std::string(126, 'x'))},
           {"continuation of nothing", masked(Opcode::continuation, "x")},
           {"text in a message", masked(Opcode::text, "a", false) + masked(Opcode::text, "b")},
           {"two bytes for 125", bytes({0x82, 0xfe, 0, 125}) + empty_key},
           {"eight bytes for 65535", bytes({0x82, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff}) + empty_key},
           {"the highest bit", bytes({0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0}) + empty_key},
       }) {
    EXPECT_EQ(at_server(text), "error protocol") << what;
  }
  EXPECT_EQ(at_client(masked(Opcode::text, "x")), "error protocol") << "masked by a server";
}

TEST(WebSocketDecoder, ChecksTextOverFramesAndPieces) {
  const std::string good =
      "\xce\xba\xe1\xbd\xb9\xf0\x9f\x98\x80 \xed\x9f\xbf \xee\x80\x80 \xf4\x8f\xbf\xbf";
  EXPECT_EQ(at_server(masked(Opcode::text, good)), "text(" + good + ")");
  for (std::size_t i = 0; i <= good.size(); ++i) {
    EXPECT_EQ(
        at_server(masked(Opcode::text, good.substr(0, i), false) + masked(Opcode::ping, "\xff") +
                  masked(Opcode::continuation, good.substr(i))),
        "ping(\xff)text(" + good + ")");
  }
  for (const std::string bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc3(",
        "aaaaaaaa\xe2\x28\xa1"}) {
    EXPECT_EQ(at_server(masked(Opcode::text, bad)), "error invalid_data") << bad;
    EXPECT_EQ(at_server(masked(Opcode::binary, bad)), "binary(" + bad + ")");
    EXPECT_EQ(decode(masked(Opcode::text, bad), {.text_check = TextCheck::none}),
              "text(" + bad + ")");
  }
}

TEST(WebSocketDecoder, NoticesWrongTextAtItsFirstByte) {
  Decoder decoder({});
  std::string frame = masked(Opcode::text, "\xce\xba\xed\xa0 and much more");
  frame.resize(6 + 4);
  EXPECT_EQ(decoder.next(frame).error().code, ErrorCode::invalid_data);
}

TEST(WebSocketDecoder, LimitsFramesAndMessages) {
  const DecoderOptions options{.max_frame = 10, .max_message = 15};
  EXPECT_EQ(decode(masked(Opcode::binary, "0123456789"), options), "binary(0123456789)");
  EXPECT_EQ(decode(masked(Opcode::binary, "0123456789X"), options), "error too_large");
  EXPECT_EQ(decode(masked(Opcode::binary, "0123456789", false) +
                       masked(Opcode::continuation, "01234") + masked(Opcode::binary, "x"),
                   options),
            "binary(012345678901234)binary(x)");
  EXPECT_EQ(
      decode(masked(Opcode::binary, "0123456789", false) + masked(Opcode::continuation, "012345"),
             options),
      "error too_large");
  // The announcement is enough.
  Decoder decoder(options);
  std::string head(FrameHead(Opcode::binary, true, 1ULL << 62U, kKey).bytes());
  EXPECT_EQ(decoder.next(head).error().code, ErrorCode::too_large);
}

TEST(WebSocketDecoder, HandsOnPartsWithoutACopy) {
  Decoder decoder({});
  std::string frame = masked(Opcode::binary, "0123456789");
  const auto first = decoder.next(std::span(frame).first(10));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->payload, "0123");
  EXPECT_EQ(first->payload.data(), frame.data() + 6);
  EXPECT_FALSE(first->end_of_message);
  const auto second = decoder.next(std::span(frame).subspan(first->consumed));
  EXPECT_EQ(second->payload, "456789");
  EXPECT_TRUE(second->end_of_message);
}

TEST(WebSocketClose, WritesWhatFits) {
  EXPECT_EQ(close_payload(kCloseNoCode, "x"), "");
  EXPECT_EQ(close_payload(1000, ""), bytes({3, 0xe8}));
  EXPECT_EQ(close_payload(1001, std::string(200, 'x')).size(), kMaxControlPayload);
  std::string characters;
  for (int i = 0; i < 100; ++i) characters += "\xe2\x82\xac";
  EXPECT_EQ(close_payload(1001, characters).size(), 2U + 123U);
  EXPECT_EQ(close_payload(1001, "x" + characters).size(), 2U + 121U);
  EXPECT_EQ(close_payload(1001,
                          "ab\xff"
                          "cd"),
            close_payload(1001, "ab"));
}

TEST(WebSocketClose, TellsWhyADecoderFailed) {
  EXPECT_EQ(close_code_of({.code = ErrorCode::protocol}), 1002);
  EXPECT_EQ(close_code_of({.code = ErrorCode::invalid_data}), 1007);
  EXPECT_EQ(close_code_of({.code = ErrorCode::too_large}), 1009);
}

}  // namespace
}  // namespace gitops::http::websocket
