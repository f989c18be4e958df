#include "common/core/byte_size.hpp"

#include <gtest/gtest.h>

namespace gitops {
namespace {

TEST(ByteSize, HasBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("25Mi"), 25 * 1024 * 1024);
  EXPECT_EQ(parse_size("1G"), 1'000'000'000);
  for (const auto* wrong : {"", "x", "-1", "1MB", "1 Mi", "9223372036854775807Gi", "1.5Mi"}) {
    EXPECT_FALSE(parse_size(wrong)) << wrong;
  }
}

TEST(ByteSize, ASettingHasItsDefaultInTheLargestUnit) {
  std::int64_t limit = 25 * 1024 * 1024;
  ConfigReader reader("test", "");
  add_size(reader, {"limit", {"LIMIT"}, "A limit"}, limit);
  EXPECT_TRUE(reader.markdown_table().contains("25Mi"));
  EXPECT_TRUE(reader.load({"--limit=1Gi"}, {}).mistakes.empty());
  EXPECT_EQ(limit, 1LL << 30);
  EXPECT_EQ(reader.load({"--limit=much"}, {}).mistakes.size(), 1U);
}

}  // namespace
}  // namespace gitops
