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

// Argo CD takes such patterns in application.namespaces; the reporter used to refuse its configuration.
TEST(NamespacePatterns, BetweenSlashesAreExpressions) {
  const std::vector<std::string> patterns{"/^team-[0-9]+$/", "/prod/"};
  for (const auto* name : {"team-1", "team-42", "prod", "shop-prod-eu"}) {
    EXPECT_TRUE(matches_any(name, patterns)) << name;
    EXPECT_TRUE(matches_any(name, patterns)) << name << ", again";
  }
  for (const auto* name : {"", "team-", "team-x", "my-team-1", "/prod"}) {
    EXPECT_EQ(matches_any(name, patterns), std::string(name) == "/prod") << name;
  }
  EXPECT_FALSE(matches_any("anything", {"/(/"}));
  EXPECT_FALSE(matches_any("anything", {"//"}));
}

TEST(NamespacePatterns, AreCheckedWhenTheConfigurationIsRead) {
  for (const auto* good : {"", "team-*", "a?c", "/^team-[0-9]{1,3}$/", "/./"}) {
    EXPECT_EQ(pattern_mistake(good), "") << good;
  }
  EXPECT_EQ(pattern_mistake("/(/"), "\"/(/\" is not a valid regular expression");
  for (const auto* bad : {"a b", "team-[ab]", "{a,b}", "^a", "/", "//", "/a"}) {
    EXPECT_NE(pattern_mistake(bad).find("is not a namespace pattern"), std::string::npos) << bad;
  }
}

}  // namespace
}  // namespace gitops::reporter
