#include "common/core/text.hpp"

#include <gtest/gtest.h>

namespace gitops {
namespace {

TEST(Text, TrimsBlanksAndLineEndsOnBothSides) {
  EXPECT_EQ(trimmed(" \t\r\n a b \n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \r\n"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Text, JoinsItems) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
}

TEST(Text, NearestFindsTheNameThatWasMeant) {
  EXPECT_EQ(nearest("chekc", {"version", "check"}), "check");
  EXPECT_EQ(nearest("vers", {"version", "check"}), std::nullopt);
  EXPECT_EQ(nearest("contxt", {"config", "context"}), "context");
  EXPECT_EQ(nearest("ab", {"xy"}), std::nullopt) << "nothing of it is left";
  EXPECT_EQ(nearest("a", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(101, 'a'), {std::string_view("a")}), std::nullopt);
}

TEST(Text, NearestTakesTheFirstOfEquals) {
  EXPECT_EQ(nearest("bat", {"cat", "hat"}), "cat");
}

TEST(Text, CountsBytesForPeople) {
  EXPECT_EQ(byte_count(0), "0 bytes");
  EXPECT_EQ(byte_count(700), "700 bytes");
  EXPECT_EQ(byte_count(512 * 1024), "512 KiB");
  EXPECT_EQ(byte_count(1024 * 1024), "1 MiB");
  EXPECT_EQ(byte_count(1024 * 1024 + 1), "1048577 bytes");
}

TEST(Text, ShortensBetweenCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc…");
  EXPECT_EQ(shortened("aß", 2), "a…");
  EXPECT_EQ(shortened("ß", 1), "…");
  EXPECT_EQ(shortened("", 0), "");
}

}  // namespace
}  // namespace gitops
