#include "common/core/attempts.hpp"

#include <gtest/gtest.h>

namespace gitops {
namespace {

using namespace std::chrono_literals;

TEST(Attempts, EachKeyHasSome) {
  Attempts attempts({.burst = 3, .period = 1s});
  const Clock::time_point start{1h};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(attempts.wait_of("a", start), 0s) << i;
    attempts.spend("a", start);
  }
  EXPECT_EQ(attempts.wait_of("a", start), 1s);
  EXPECT_EQ(attempts.wait_of("b", start), 0s);
  EXPECT_EQ(attempts.wait_of("a", start + 1s), 0s);
  attempts.spend("a", start + 1s);
  EXPECT_EQ(attempts.wait_of("a", start + 1s), 1s);
  // All of them again.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(attempts.wait_of("a", start + 1h), 0s) << i;
    attempts.spend("a", start + 1h);
  }
  EXPECT_GT(attempts.wait_of("a", start + 1h), 0s);
}

TEST(Attempts, RememberSoManyKeys) {
  Attempts attempts({.burst = 1, .period = 1h, .max_keys = 2});
  const Clock::time_point now{1h};
  attempts.spend("a", now);
  attempts.spend("b", now);
  attempts.spend("a", now);
  attempts.spend("c", now);  // b tried longest ago
  EXPECT_EQ(attempts.keys(), 2U);
  EXPECT_GT(attempts.wait_of("a", now), 0s);
  EXPECT_EQ(attempts.wait_of("b", now), 0s);
  EXPECT_GT(attempts.wait_of("c", now), 0s);
}

}  // namespace
}  // namespace gitops
