#include "event-reporter/ledger/sequence.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNoon{std::chrono::milliseconds(1'772'625'600'000)};
constexpr Sequence kNoonMicros = 1'772'625'600'000'000;

TEST(Sequence, FollowsTheWallClock) {
  EXPECT_EQ(sequence_of(kNoon), kNoonMicros);
  EXPECT_EQ(next_sequence(kNoon, 0, 0), kNoonMicros);
  EXPECT_EQ(next_sequence(kNoon + 1ms, 0, kNoonMicros), kNoonMicros + 1000);
  EXPECT_EQ(sequence_of(WallTime(-1ms)), 0U);
}

TEST(Sequence, NeverGoesBack) {
  EXPECT_EQ(next_sequence(kNoon, 0, kNoonMicros), kNoonMicros + 1) << "in the same millisecond";
  EXPECT_EQ(next_sequence(kNoon - 7h, 0, kNoonMicros), kNoonMicros + 1) << "a clock set back";
  constexpr auto kMax = std::numeric_limits<Sequence>::max();
  EXPECT_EQ(next_sequence(kNoon, 0, kMax), kMax);
}

TEST(Sequence, IsNotBelowTheFloor) {
  EXPECT_EQ(next_sequence(kNoon, kNoonMicros + 5, 0), kNoonMicros + 5);
  EXPECT_EQ(next_sequence(kNoon, kNoonMicros + 5, kNoonMicros + 5), kNoonMicros + 6);
}

}  // namespace
}  // namespace gitops::reporter
