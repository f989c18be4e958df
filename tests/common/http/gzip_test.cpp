#include "common/http/gzip.hpp"

#include <limits>

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
