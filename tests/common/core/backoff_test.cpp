#include "common/core/backoff.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace gitops {
namespace {

using std::chrono::milliseconds;

constexpr Backoff::Options kOptions{.initial = milliseconds(100), .max = milliseconds(1000)};

TEST(Backoff, EveryDelayStaysUnderTheDoublingCap) {
  const std::vector<int> caps = {100, 200, 400, 800, 1000, 1000, 1000};
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Backoff backoff(kOptions, seed);
    for (const int cap : caps) {
      const auto delay = backoff.next();
      EXPECT_GE(delay, milliseconds(0));
      EXPECT_LE(delay, milliseconds(cap));
    }
  }
}

TEST(Backoff, SpreadsDelaysOverTheWholeRange) {
  Backoff backoff(kOptions, 7);
  for (int i = 0; i < 4; ++i) backoff.next();
  std::vector<int> tenths(10);
  for (int i = 0; i < 10'000; ++i) {
    const auto index =
        std::min<std::size_t>(9, static_cast<std::size_t>(backoff.next().count()) / 100);
    ++tenths[index];
  }
  for (const int count : tenths) {
    EXPECT_GT(count, 800);
    EXPECT_LT(count, 1200);
  }
}

TEST(Backoff, ResetStartsOver) {
  Backoff backoff(kOptions, 3);
  for (int i = 0; i < 10; ++i) backoff.next();
  EXPECT_EQ(backoff.attempts(), 10U);
  backoff.reset();
  EXPECT_EQ(backoff.attempts(), 0U);
  EXPECT_LE(backoff.next(), kOptions.initial);
}

TEST(Backoff, HonoursAFloorWithAtMostATenthMore) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Backoff backoff(kOptions, seed);
    const auto delay = backoff.next(milliseconds(30'000));
    EXPECT_GE(delay, milliseconds(30'000));
    EXPECT_LE(delay, milliseconds(33'000));
  }
}

TEST(Backoff, GivesTheSameDelaysForTheSameSeed) {
  Backoff one(kOptions, 42);
  Backoff two(kOptions, 42);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(one.next(), two.next());
}

TEST(Backoff, SurvivesAnyNumberOfAttempts) {
  Backoff backoff({.initial = milliseconds(1), .max = std::chrono::hours(24)}, 1);
  for (int i = 0; i < 100'000; ++i) EXPECT_LE(backoff.next(), std::chrono::hours(24));
}

TEST(Backoff, CorrectsOptionsThatMakeNoSense) {
  Backoff backoff({.initial = milliseconds(0), .max = milliseconds(-5)}, 1);
  for (int i = 0; i < 10; ++i) EXPECT_LE(backoff.next(), milliseconds(1));
}

TEST(RandomSeed, DiffersFromCallToCall) {
  EXPECT_NE(random_seed(), random_seed());
}

}  // namespace
}  // namespace gitops
