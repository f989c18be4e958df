#include "common/http/gzip.hpp"

#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace gitops::http {
namespace {

constexpr auto kUnlimited = std::numeric_limits<std::size_t>::max();

std::string noise(std::size_t size) {
  std::string out;
  std::uint32_t state = 1;
  while (out.size() < size) {
    state = state * 1664525u + 1013904223u;
    out.push_back(static_cast<char>(state >> 24));
  }
  return out;
}

TEST(Gzip, RoundTrips) {
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(1'000'000, 'x'), noise(300'000)}) {
    for (const int level : {1, 6, 9}) {
      const auto back = gzip_decompress(gzip_compress(text, level), kUnlimited);
      ASSERT_TRUE(back);
      EXPECT_TRUE(*back == text);
    }
  }
}

TEST(Gzip, LimitIsInclusive) {
  const auto packed = gzip_compress(std::string(1000, 'x'));
  EXPECT_TRUE(gzip_decompress(packed, 1000));
  const auto refused = gzip_decompress(packed, 999);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::too_large);
}

TEST(Gzip, AC07_BombStopsAtTheLimit) {
  const auto bomb = gzip_compress(std::string(20 * 1024 * 1024, '\0'), 9);
  ASSERT_LT(bomb.size(), 30'000u);
  Inflater inflater(1024 * 1024);
  std::string out;
  const auto fed = inflater.feed(bomb, out);
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().code, ErrorCode::too_large);
  EXPECT_LE(out.size(), 1024u * 1024);
  EXPECT_LE(out.capacity(), 4u * 1024 * 1024);
}

TEST(Gzip, RefusesCorruptAndTruncated) {
  const auto packed = gzip_compress("hello hello hello");
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_FALSE(gzip_decompress(packed.substr(0, size), kUnlimited)) << size;
  }
  auto wrong_sum = packed;
  wrong_sum[wrong_sum.size() - 6] ^= 1;
  EXPECT_EQ(gzip_decompress(wrong_sum, kUnlimited).error().code, ErrorCode::invalid_data);
  EXPECT_FALSE(gzip_decompress("not compressed at all", kUnlimited));
  EXPECT_FALSE(gzip_decompress(packed + "garbage", kUnlimited));
}

TEST(Inflater, ByteByByteGivesTheSame) {
  const auto text = noise(5000) + std::string(5000, 'y');
  Inflater inflater(kUnlimited);
  std::string out;
  for (const char c : gzip_compress(text)) {
    EXPECT_FALSE(inflater.finished());
    ASSERT_TRUE(inflater.feed({&c, 1}, out));
  }
  EXPECT_TRUE(inflater.finished());
  EXPECT_TRUE(out == text);
}

// A complete member takes another way than a part of one.
TEST(Inflater, AWholeMemberGivesWhatItsPartsGive) {
  const auto packed = gzip_compress(noise(2'000) + std::string(2'000, 'x'));
  const auto with = [&packed](std::size_t from_end, char change) {
    auto bytes = packed;
    bytes[bytes.size() - from_end] = static_cast<char>(bytes[bytes.size() - from_end] ^ change);
    return bytes;
  };
  auto named = packed;
  named[3] = 8;  // FNAME
  named.insert(10, std::string("a.json\0", 7));
  auto reserved = packed;
  reserved[3] = '\x80';
  const std::vector<std::string> all{packed,
                                     named,
                                     reserved,
                                     packed + packed,
                                     packed + gzip_compress(""),
                                     packed + "x",
                                     with(1, 1),   // a size of 16 MB
                                     with(3, 1),   // of 256 bytes more or less
                                     with(4, 1),   // of one byte more or less
                                     with(8, 1),   // another checksum
                                     with(20, 1),  // other data
                                     packed.substr(0, packed.size() - 4)};
  for (const std::size_t limit : {kUnlimited, std::size_t{4'000}, std::size_t{3'999}}) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      Inflater whole(limit);
      std::string out = "before";
      const auto fed = whole.feed(all[i], out);
      Inflater parts(limit);
      std::string expected = "before";
      Result<void> fed_in_parts;
      for (const char byte : all[i]) {
        if (fed_in_parts) fed_in_parts = parts.feed({&byte, 1}, expected);
      }
      EXPECT_EQ(fed.has_value(), fed_in_parts.has_value()) << i;
      if (!fed || !fed_in_parts) continue;
      EXPECT_TRUE(out == expected) << i;
      EXPECT_EQ(whole.finished(), parts.finished()) << i;
    }
  }
}

TEST(Inflater, ReadsSeveralMembers) {
  EXPECT_EQ(*gzip_decompress(gzip_compress("one ") + gzip_compress("two"), kUnlimited), "one two");
}

TEST(Deflater, CanBeReadAfterEachSync) {
  Deflater deflater(4);
  std::string out;
  deflater.feed("first, ", Deflater::Flush::sync, out);
  Inflater inflater(1 << 20);
  std::string text;
  ASSERT_TRUE(inflater.feed(out, text));
  EXPECT_EQ(text, "first, ");
  out.clear();
  deflater.feed(std::string(100'000, 'x'), Deflater::Flush::none, out);
  deflater.feed({}, Deflater::Flush::finish, out);
  ASSERT_TRUE(inflater.feed(out, text));
  EXPECT_TRUE(inflater.finished());
  EXPECT_EQ(text.size(), 100'007U);
}

}  // namespace
}  // namespace gitops::http
