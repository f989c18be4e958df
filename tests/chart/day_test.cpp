// Recorded frames become the series of a day: counters go on, a restart begins at what was recorded, time stamps keep their
// age, and what is gone is stale.
#include "chart/day.hpp"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::test {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::Pair;

constexpr auto kInterval = seconds(30);

Frame frame(const std::string& exposition, std::size_t start = 0, double at = 1000) {
  Frame frame;
  frame.programs["p"] = {.scrape = read_scrape(exposition, at), .start = start};
  return frame;
}

Frame counted(int value, std::size_t start = 0) {
  return frame("# TYPE c counter\nc{a=\"b\"} " + std::to_string(value) + "\n", start);
}

TEST(AlertDay, ACounterGoesOnWhenFramesAreRepeated) {
  Day day(kInterval, {{"p", {.pods = "web", .replicas = 2}}});
  day.play_until(seconds(120), {counted(10), counted(13)});
  EXPECT_EQ(day.time(), seconds(120));
  constexpr const char* kValues = "10.000 13.000+0x1 16.000";
  EXPECT_THAT(day.series(),
              ElementsAre(Pair(R"(c{namespace="gitops",pod="web-0",a="b"})", kValues),
                          Pair(R"(c{namespace="gitops",pod="web-1",a="b"})", kValues)));
}

TEST(AlertDay, ARestartBeginsAtWhatWasRecorded) {
  Day day(kInterval, {{"p", {.pods = "web"}}});
  day.play({counted(10), counted(2, 1)});
  EXPECT_THAT(day.series(), ElementsAre(Pair(testing::_, "10.000 2.000")));
}

TEST(AlertDay, ThePodOfADeploymentGetsAnotherNameAndTheOldOneIsStale) {
  Day day(kInterval, {{"p", {.pods = "web", .is_stateful = false}}});
  day.play({counted(10), counted(2, 1), counted(3, 1)});
  EXPECT_THAT(day.series(), ElementsAre(Pair(testing::HasSubstr("web-0-0"), "10.000 stale"),
                                        Pair(testing::HasSubstr("web-1-0"), "stale 2.000 3.000")));
}

TEST(AlertDay, AGaugeIsAsRecordedAndATimeStampKeepsItsAge) {
  Day day(kInterval, {{"p", {.pods = "web"}}});
  const auto recorded = [](double at) {
    return frame("# TYPE g gauge\ng 7\n# TYPE t_timestamp_seconds gauge\nt_timestamp_seconds 990\n",
                 0, at);
  };
  day.play({recorded(1000), recorded(1001)});
  EXPECT_THAT(day.series(), ElementsAre(Pair(testing::StartsWith("g{"), "7.000+0x1"),
                                        Pair(testing::StartsWith("t_"), "-10.000 19.000")));
}

}  // namespace
}  // namespace gitops::test
