#include "gitopsctl/line_diff.hpp"

#include <gtest/gtest.h>

namespace gitops::ctl {
namespace {

TEST(LineDiff, OnlyWhatChangesAndItsSurroundingsAreShown) {
  EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(unified_diff("", ""), "");
  EXPECT_EQ(unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
  EXPECT_EQ(unified_diff("", "new\n"), "@@ -1,0 +1,1 @@\n+new\n");
  EXPECT_EQ(unified_diff("old", ""), "@@ -1,1 +1,0 @@\n-old\n");
}

TEST(LineDiff, DistantChangesHaveHeadsOfTheirOwn) {
  std::string before;
  for (int i = 0; i < 20; ++i) before += std::to_string(i) + '\n';
  const std::string after = "x\n" + before + "y\n";
  EXPECT_EQ(unified_diff(before, after),
            "@@ -1,3 +1,4 @@\n+x\n 0\n 1\n 2\n@@ -18,3 +19,4 @@\n 17\n 18\n 19\n+y\n");
}

TEST(LineDiff, HugeTextsAreWhollyDifferent) {
  std::string huge;
  for (int i = 0; i < 5'000; ++i) huge += "line\n";
  EXPECT_EQ(diff_lines(huge, huge).size(), 10'000U);
}

}  // namespace
}  // namespace gitops::ctl
