#include "common/core/lru_cache.hpp"

#include <gtest/gtest.h>

namespace gitops {
namespace {

TEST(LruCache, DropsWhatWasUsedLongestAgo) {
  LruCache<int> cache(3'000);
  for (int i = 0; i < 3; ++i) cache.put(std::to_string(i), i, 700);
  ASSERT_NE(cache.find("0"), nullptr);
  EXPECT_EQ(*cache.find("0"), 0);
  cache.put("3", 3, 700);
  EXPECT_EQ(cache.find("1"), nullptr);
  EXPECT_NE(cache.find("0"), nullptr);
  EXPECT_EQ(cache.size(), 3U);
  EXPECT_LE(cache.bytes(), 3'000U);
}

TEST(LruCache, ReplacingCountsOnce) {
  LruCache<std::string> cache(1'000);
  for (int i = 0; i < 50; ++i) cache.put("a", std::to_string(i), 100);
  EXPECT_EQ(*cache.find("a"), "49");
  EXPECT_EQ(cache.size(), 1U);
  cache.erase("a");
  cache.erase("a");
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(LruCache, DoesNotKeepWhatIsTooLarge) {
  LruCache<int> cache(1'000);
  cache.put("a", 1, 100);
  cache.put("b", 2, 5'000);
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_NE(cache.find("a"), nullptr);
  cache.put("a", 3, 5'000);
  EXPECT_EQ(cache.find("a"), nullptr) << "the old value is not the value any more";
}

}  // namespace
}  // namespace gitops
