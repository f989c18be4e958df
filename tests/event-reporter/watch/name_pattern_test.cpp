#include "event-reporter/watch/name_pattern.hpp"

#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

TEST(NamespacePatterns, MatchAsGlobs) {
  const std::vector<std::string> patterns{"team-*", "exact", "*-prod", "a?c", "x*y*z"};
  for (const auto* name :
       {"team-", "team-a", "exact", "-prod", "shop-prod", "abc", "xyz", "x1y2z"}) {
    EXPECT_TRUE(matches_any(name, patterns)) << name;
  }
  for (const auto* name : {"", "team", "exactly", "prod", "ac", "abbc", "xz", "x1y2", "steam-a"}) {
    EXPECT_FALSE(matches_any(name, patterns)) << name;
  }
  EXPECT_TRUE(matches_any("anything", {"*"}));
  EXPECT_FALSE(matches_any("anything", {}));
}

}  // namespace
}  // namespace gitops::reporter
