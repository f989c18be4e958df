#include "common/core/time.hpp"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace gitops {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

WallTime at(std::int64_t millis) {
  return WallTime(milliseconds(millis));
}

TEST(Rfc3339, FormatsInThreeResolutions) {
  struct Case {
    std::int64_t millis;
    std::string_view whole, three, six;
  };
  const std::vector<Case> cases = {
      {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.000000Z"},
      {1772615727412, "2026-03-04T09:15:27Z", "2026-03-04T09:15:27.412Z",
       "2026-03-04T09:15:27.412000Z"},
      {1709164799009, "2024-02-28T23:59:59Z", "2024-02-28T23:59:59.009Z",
       "2024-02-28T23:59:59.009000Z"},
      {-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999000Z"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(format_rfc3339(at(c.millis)), c.whole);
    EXPECT_EQ(format_rfc3339_millis(at(c.millis)), c.three);
    EXPECT_EQ(format_rfc3339_micros(at(c.millis)), c.six);
    EXPECT_EQ(parse_rfc3339(c.three).value(), at(c.millis));
    EXPECT_EQ(parse_rfc3339(c.six).value(), at(c.millis));
  }
}

TEST(Rfc3339, ReadsFractionsAndOffsets) {
  const std::vector<std::pair<std::string_view, std::int64_t>> cases = {
      {"2026-03-04T09:15:27Z", 1772615727000},
      {"2026-03-04t09:15:27z", 1772615727000},
      {"2026-03-04 09:15:27Z", 1772615727000},
      {"2026-03-04T09:15:27.4Z", 1772615727400},
      {"2026-03-04T09:15:27.4129999999999Z", 1772615727412},
      {"2026-03-04T10:15:27+01:00", 1772615727000},
      {"2026-03-04T03:45:27-05:30", 1772615727000},
      {"2026-03-04T09:15:27+00:00", 1772615727000},
      {"2024-02-29T00:00:00Z", 1709164800000},
      {"2016-12-31T23:59:60Z", 1483228800000},
      {"0001-01-01T00:00:00Z", -62135596800000},
      {"9999-12-31T23:59:59.999Z", 253402300799999},
  };
  for (const auto& [text, millis] : cases) {
    const auto time = parse_rfc3339(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(time->time_since_epoch().count(), millis) << text;
  }
}

TEST(Rfc3339, RefusesEverythingElse) {
  for (const std::string_view text : {"",
                                      "2026",
                                      "2026-03-04",
                                      "2026-03-04T09:15:27",
                                      "2026-03-04T09:15Z",
                                      "2026-3-4T09:15:27Z",
                                      "2026-13-04T09:15:27Z",
                                      "2026-00-04T09:15:27Z",
                                      "2026-02-29T09:15:27Z",
                                      "2026-03-32T09:15:27Z",
                                      "2026-03-04T24:00:00Z",
                                      "2026-03-04T09:60:27Z",
                                      "2026-03-04T09:15:61Z",
                                      "2026-03-04T09:15:27.Z",
                                      "2026-03-04T09:15:27+1:00",
                                      "2026-03-04T09:15:27+24:00",
                                      "2026-03-04T09:15:27+01:60",
                                      "2026-03-04T09:15:27ZZ",
                                      "2026-03-04T09:15:27Z ",
                                      " 2026-03-04T09:15:27Z",
                                      "-026-03-04T09:15:27Z",
                                      "2026-03-04T+9:15:27Z",
                                      "yesterday"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

TEST(Duration, ReadsWhatGoWrites) {
  const std::vector<std::pair<std::string_view, std::int64_t>> cases = {
      {"0", 0},
      {"0s", 0},
      {"300ms", 300},
      {"10s", 10'000},
      {"10", 10'000},
      {"1.5", 1500},
      {"1m30s", 90'000},
      {"24h", 86'400'000},
      {"1h0m1s", 3'601'000},
      {"1.5h", 5'400'000},
      {".5s", 500},
      {"2.s", 2000},
      {"-2s", -2000},
      {"1500us", 2},
      {"1500\u00b5s", 2},
      {"2000000ns", 2},
      {"876000h", 3'153'600'000'000},
  };
  for (const auto& [text, millis] : cases) {
    const auto duration = parse_duration(text);
    ASSERT_TRUE(duration) << text;
    EXPECT_EQ(duration->count(), millis) << text;
  }
}

TEST(Duration, RefusesEverythingElse) {
  for (const std::string_view text :
       {"", "-", "s", "ten", "10 s", "10x", "1m30", "1h 5m", "1e3s", "--1s", "+1s", "1..5s",
        "876001h", "99999999999999999999999999h", "10s ", "1d", ".", ".s"}) {
    const auto duration = parse_duration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_TRUE(duration.error().message.contains("1m30s")) << duration.error().message;
  }
}

TEST(Duration, FormatsTheShortestText) {
  const std::vector<std::pair<std::int64_t, std::string_view>> cases = {
      {0, "0s"},           {1, "1ms"},        {1000, "1s"},           {1500, "1s500ms"},
      {90'000, "1m30s"},   {3'600'000, "1h"}, {3'660'001, "1h1m1ms"}, {86'400'000, "24h"},
      {-90'000, "-1m30s"},
  };
  for (const auto& [millis, text] : cases) {
    EXPECT_EQ(format_duration(milliseconds(millis)), text);
    EXPECT_EQ(parse_duration(text).value().count(), millis);
  }
  EXPECT_TRUE(format_duration(milliseconds::min()).starts_with("-"));
}

TEST(RetryAfter, ReadsSecondsAndDates) {
  const WallTime now = parse_rfc3339("1994-11-06T08:49:37Z").value();
  const std::vector<std::pair<std::string_view, std::int64_t>> cases = {
      {"", 0},
      {"0", 0},
      {"7", 7'000},
      {"300", 300'000},
      {"301", 300'000},
      {"99999999999999999999", 300'000},
      {"Sun, 06 Nov 1994 08:49:47 GMT", 10'000},
      {"Sun, 06 Nov 1994 08:49:27 GMT", 0},
      {"Sun, 06 Nov 2094 08:49:37 GMT", 300'000},
      {"Sun, 06 Nov 1994 08:49:47 CET", 0},
      {"Sun, 06 Xyz 1994 08:49:47 GMT", 0},
      {"Sun, 31 Feb 1994 08:49:47 GMT", 0},
      {"-1", 0},
      {"1.5", 0},
      {"soon", 0},
  };
  for (const auto& [value, millis] : cases) {
    EXPECT_EQ(parse_retry_after(value, now).count(), millis) << value;
  }
}

TEST(Deadline, NeverOverflows) {
  EXPECT_EQ(deadline_after(Clock::duration::max()), kNever);
  const auto before = Clock::now();
  const auto deadline = deadline_after(seconds(1));
  EXPECT_GE(deadline, before + seconds(1));
  EXPECT_LT(deadline, before + seconds(60));
  EXPECT_LT(deadline_after(seconds(-1)), Clock::now());
}

}  // namespace
}  // namespace gitops
