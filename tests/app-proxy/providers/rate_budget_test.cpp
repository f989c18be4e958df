#include "app-proxy/providers/rate_budget.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;

const Clock::time_point kNow{std::chrono::hours(10)};
const WallTime kWall{std::chrono::milliseconds(1'700'000'000'000)};

http::Response limited(int status, std::string remaining, std::chrono::seconds reset_in,
                       std::string limit = "5000") {
  return {.status = status,
          .headers = {{"X-RateLimit-Limit", std::move(limit)},
                      {"X-RateLimit-Remaining", std::move(remaining)},
                      {"X-RateLimit-Reset", std::to_string(1'700'000'000 + reset_in.count())}}};
}

TEST(RateBudget, StopsWhenNothingRemainsUntilItResets) {
  RateBudget budget;
  EXPECT_FALSE(budget.wait("core", Urgency::person, kNow));
  EXPECT_FALSE(budget.note("core", limited(200, "1", 90s), kNow, kWall));
  EXPECT_FALSE(budget.wait("core", Urgency::person, kNow));
  budget.spend("core");
  const auto wait = budget.wait("core", Urgency::person, kNow + 10s);
  ASSERT_TRUE(wait);
  EXPECT_EQ(*wait, Clock::duration(80s));
  EXPECT_FALSE(budget.wait("search", Urgency::person, kNow)) << "another limit";
  EXPECT_FALSE(budget.wait("core", Urgency::person, kNow + 90s));
}

TEST(RateBudget, LeavesAFifthToPeople) {
  RateBudget budget;
  EXPECT_FALSE(budget.note("core", limited(200, "1000", 60s), kNow, kWall));
  EXPECT_TRUE(budget.wait("core", Urgency::background, kNow));
  EXPECT_FALSE(budget.wait("core", Urgency::person, kNow));
  EXPECT_FALSE(budget.note("core", limited(200, "1001", 60s), kNow, kWall));
  EXPECT_FALSE(budget.wait("core", Urgency::background, kNow));
}

TEST(RateBudget, ARefusalByALimitIsToldFromALackingRight) {
  RateBudget budget;
  EXPECT_FALSE(budget.note("core", {.status = 403}, kNow, kWall));
  EXPECT_FALSE(budget.note("core", limited(403, "4000", 60s), kNow, kWall));
  EXPECT_FALSE(budget.wait("core", Urgency::person, kNow));
  EXPECT_TRUE(budget.note("core", limited(403, "0", 120s), kNow, kWall));
  EXPECT_EQ(budget.wait("core", Urgency::person, kNow).value(), Clock::duration(120s));
  EXPECT_FALSE(budget.wait("search", Urgency::person, kNow));
}

TEST(RateBudget, ASecondaryLimitStopsEverything) {
  RateBudget budget;
  EXPECT_TRUE(
      budget.note("core", {.status = 403, .headers = {{"Retry-After", "30"}}}, kNow, kWall));
  EXPECT_EQ(budget.wait("search", Urgency::person, kNow).value(), Clock::duration(30s));
  RateBudget other;
  EXPECT_TRUE(other.note(
      "core",
      {.status = 403, .body = R"({"message":"You have exceeded a secondary rate limit. Wait."})"},
      kNow, kWall));
  EXPECT_EQ(other.wait("core", Urgency::person, kNow).value(), Clock::duration(60s));
}

TEST(RateBudget, Understands429AndTheHeadersOfGitLab) {
  RateBudget budget;
  EXPECT_TRUE(budget.note("core", {.status = 429}, kNow, kWall));
  EXPECT_EQ(budget.wait("core", Urgency::person, kNow).value(), Clock::duration(60s));
  RateBudget gitlab;
  EXPECT_TRUE(gitlab.note("core",
                          {.status = 429,
                           .headers = {{"RateLimit-Remaining", "0"},
                                       {"RateLimit-Limit", "60"},
                                       {"RateLimit-Reset", "1700000015"}}},
                          kNow, kWall));
  EXPECT_EQ(gitlab.wait("core", Urgency::person, kNow).value(), Clock::duration(15s));
}

TEST(RateBudget, NoAnswerStopsATokenForMoreThanAnHour) {
  RateBudget budget;
  auto hostile = limited(200, "0", 0s);
  hostile.headers.set("X-RateLimit-Reset", "99999999999999");
  EXPECT_FALSE(budget.note("core", hostile, kNow, kWall));
  EXPECT_LE(budget.wait("core", Urgency::person, kNow).value(), Clock::duration(1h));
  EXPECT_FALSE(budget.note("core", limited(200, "-5", 60s), kNow + 1h, kWall + 1h));
  EXPECT_FALSE(budget.note("core", limited(200, "x", 60s), kNow + 1h, kWall + 1h));
  EXPECT_FALSE(budget.wait("core", Urgency::person, kNow + 1h));
}

}  // namespace
}  // namespace gitops::app_proxy
