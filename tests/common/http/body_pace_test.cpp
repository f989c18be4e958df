#include "common/http/body_pace.hpp"

#include <gtest/gtest.h>

namespace gitops::http {
namespace {

using namespace std::chrono_literals;

const Clock::time_point kStart = Clock::time_point(1h);

TEST(BodyPace, AllowsForAGraceAndThenTheLeastRate) {
  BodyPace pace;
  pace.start({.min_body_rate = 1000, .body_grace = 10s, .body_timeout = 60s}, kStart);
  EXPECT_EQ(pace.wait(kStart), kStart + 10s);
  pace.came(2000, kStart + 4s);  // 6 s are left, and 2 s more for 2,000 bytes
  EXPECT_EQ(pace.wait(kStart + 4s), kStart + 12s);
  pace.came(1, kStart + 12s);
  EXPECT_LT(pace.wait(kStart + 12s), kStart + 12s + 2ms);
}

TEST(BodyPace, OnlyTheTimeOfWaitingCounts) {
  BodyPace pace;
  pace.start({.min_body_rate = 1000, .body_grace = 10s, .body_timeout = 60s}, kStart);
  EXPECT_EQ(pace.wait(kStart), kStart + 10s);
  pace.came(1000, kStart + 1s);
  EXPECT_EQ(pace.wait(kStart + 50s), kStart + 60s);  // the upstream was slow meanwhile
}

TEST(BodyPace, NoSilenceIsLongerThanTheTimeoutHoweverMuchCame) {
  BodyPace pace;
  pace.start({.min_body_rate = 1000, .body_grace = 10s, .body_timeout = 60s}, kStart);
  pace.came(100'000'000, kStart);
  EXPECT_EQ(pace.wait(kStart), kStart + 60s);
  pace.came(1, kStart + 59s);  // one byte does not buy another minute
  EXPECT_LT(pace.wait(kStart + 59s), kStart + 61s);
}

TEST(BodyPace, AShortTimeoutHoldsWithinTheGrace) {
  BodyPace pace;
  pace.start({.body_timeout = 1s}, kStart);
  EXPECT_EQ(pace.wait(kStart), kStart + 1s);
  pace.came(1, kStart + 1s);
  EXPECT_EQ(pace.wait(kStart + 1s), kStart + 2s);
}

TEST(BodyPace, TheDeadlineIsForAllOfIt) {
  BodyPace pace;
  pace.start({.min_body_rate = 0, .body_deadline = 100s, .body_timeout = 60s}, kStart);
  EXPECT_EQ(pace.wait(kStart), kStart + 60s);
  EXPECT_EQ(pace.wait(kStart + 50s), kStart + 100s);
  pace.came(1'000'000, kStart + 90s);
  EXPECT_EQ(pace.wait(kStart + 90s), kStart + 100s);
}

}  // namespace
}  // namespace gitops::http
