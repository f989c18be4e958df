#include "common/tunnel/snappy_stream.hpp"

#include <random>
#include <vector>

#include <gmock/gmock.h>

#include "common/tunnel/bytes.hpp"

namespace gitops::tunnel {
namespace {

using testing::HasSubstr;

const std::string kIdentifier = from_hex("ff060000734e61507059");

// All data of a stream that comes in pieces of a size; an error as text in brackets.
std::string decoded(std::string_view wire, std::size_t piece = 1'000'000) {
  SnappyDecoder decoder;
  std::string all;
  while (!wire.empty()) {
    auto part = wire.substr(0, piece);
    wire.remove_prefix(part.size());
    while (true) {
      const auto data = decoder.next(part);
      if (!data) return "(" + data.error().message + ")";
      if (data->empty()) break;
      all += *data;
    }
  }
  return decoder.in_chunk() ? all + "..." : all;
}

std::string encoded(std::string_view data) {
  SnappyEncoder encoder;
  std::string out;
  encoder.encode(out, data);
  return out;
}

std::string random_text(std::size_t size) {
  std::mt19937 random(1);
  std::string text(size, '\0');
  for (char& byte : text) byte = static_cast<char>(random());
  return text;
}

TEST(Crc32c, AgreesWithRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(""), 0U);
}

// The bytes are those of frp's own library.
TEST(SnappyStream, AgreesWithFrp) {
  const auto wire = from_hex("ff060000734e6150705901090000bb1f1c1968656c6c6f");
  EXPECT_EQ(hex_encode(encoded("hello")), hex_encode(wire));
  EXPECT_EQ(decoded(wire), "hello");
}

TEST(SnappyStream, CarriesEverythingInAnySplit) {
  const std::vector<std::string> texts{"x",
                                       std::string(65'536, 'a'),
                                       std::string(65'537, 'a'),
                                       random_text(65'536),
                                       random_text(200'000),
                                       std::string(1'000'000, 'b') + random_text(100)};
  for (const auto& text : texts) {
    const auto wire = encoded(text);
    for (const std::size_t piece : {1U, 3U, 100U, 65'536U, 10'000'000U}) {
      EXPECT_TRUE(decoded(wire, piece) == text) << text.size() << " in pieces of " << piece;
    }
  }
  EXPECT_LT(encoded(std::string(1'000'000, 'a')).size(), 60'000u);
  // What cannot be compressed grows by a head for each chunk.
  EXPECT_EQ(encoded(random_text(131'072)).size(), 131'072u + 10 + 2 * 8);
}

TEST(SnappyStream, EachCallCanBeReadAtOnce) {
  SnappyEncoder encoder;
  SnappyDecoder decoder;
  for (const std::string text : {"first", "second", "third"}) {
    std::string wire;
    encoder.encode(wire, text);
    std::string_view input = wire;
    EXPECT_EQ(decoder.next(input).value(), text);
    EXPECT_TRUE(input.empty());
  }
}

TEST(SnappyStream, LeavesOutWhatSaysNothing) {
  const auto chunk = from_hex("01090000bb1f1c1968656c6c6f");
  const auto padding = from_hex("fe030000") + "xxx";
  const auto skippable = from_hex("80000000");
  EXPECT_EQ(decoded(kIdentifier + padding + chunk + skippable + kIdentifier + chunk), "hellohello");
  EXPECT_EQ(decoded(kIdentifier + padding + chunk + skippable + kIdentifier + chunk, 1),
            "hellohello");
  EXPECT_EQ(decoded(kIdentifier + padding.substr(0, 5)), "...");
}

TEST(SnappyStream, RefusesWhatIsMalformed) {
  const auto chunk = from_hex("01090000bb1f1c1968656c6c6f");
  EXPECT_THAT(decoded(chunk), HasSubstr("no identifier"));
  EXPECT_THAT(decoded(from_hex("fe000000")), HasSubstr("no identifier"));
  EXPECT_THAT(decoded(from_hex("ff060000734e61507058")), HasSubstr("a wrong identifier"));
  EXPECT_THAT(decoded(from_hex("ff070000734e6150705959")), HasSubstr("a wrong identifier"));
  EXPECT_THAT(decoded(kIdentifier + from_hex("02000000")), HasSubstr("an unknown type"));
  EXPECT_THAT(decoded(kIdentifier + from_hex("7f000000")), HasSubstr("an unknown type"));
  EXPECT_THAT(decoded(kIdentifier + from_hex("01030000000000")), HasSubstr("without data"));
  EXPECT_THAT(decoded(kIdentifier + from_hex("0104000000000000")), HasSubstr("without data"));
  auto wrong = chunk;
  wrong.back() = 'x';
  EXPECT_THAT(decoded(kIdentifier + wrong), HasSubstr("a wrong checksum"));
  EXPECT_THAT(decoded(kIdentifier + from_hex("0006000000000000") + "\x05x"),
              HasSubstr("a malformed block"));
}

// A length that is only announced costs nothing, and a block says how long it becomes before anything
// is made of it.
TEST(SnappyStream, AC15_ABombIsRefusedBeforeItIsUnpacked) {
  EXPECT_THAT(decoded(kIdentifier + from_hex("01050001")), HasSubstr("too long"));
  EXPECT_THAT(decoded(kIdentifier + from_hex("00ffffff")), HasSubstr("too long"));
  // A block that announces 4 GiB, and one of a byte more than a chunk has.
  EXPECT_THAT(decoded(kIdentifier + from_hex("000a000000000000ffffffff0f00")),
              HasSubstr("becomes too long"));
  EXPECT_THAT(decoded(kIdentifier + from_hex("000800000000000081800400")),
              HasSubstr("becomes too long"));
}

TEST(SnappyStream, AC15_AStreamThatSaysNothingEnds) {
  std::string wire = kIdentifier;
  const auto padding = from_hex("fe00ff00") + std::string(0xff00, 'x');
  for (int i = 0; i < 15; ++i) wire += padding;
  EXPECT_EQ(decoded(wire + from_hex("01090000bb1f1c1968656c6c6f")), "hello");
  for (int i = 0; i < 3; ++i) wire += padding;
  EXPECT_THAT(decoded(wire), HasSubstr("no data"));
  EXPECT_THAT(decoded(wire, 7), HasSubstr("no data"));
  std::string empty = kIdentifier;
  for (int i = 0; i < 300'000; ++i) empty += from_hex("fe000000");
  EXPECT_THAT(decoded(empty), HasSubstr("no data"));
}

}  // namespace
}  // namespace gitops::tunnel
