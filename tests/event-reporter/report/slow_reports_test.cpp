#include "event-reporter/report/slow_reports.hpp"

#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

TEST(SlowReports, SlowOnesHoldAtMostHalfOfTheWorkers) {
  SlowReports slow(5);
  EXPECT_EQ(slow.places(), 2U);
  for (const auto* key : {"a", "b", "c"}) slow.begin(key);
  EXPECT_TRUE(slow.may_go_on("a"));
  EXPECT_TRUE(slow.may_go_on("b"));
  EXPECT_FALSE(slow.has_place());
  EXPECT_FALSE(slow.may_go_on("c"));
  slow.end("c", true);
  EXPECT_TRUE(slow.is_slow("c"));
  slow.end("a", true);
  EXPECT_TRUE(slow.has_place());
  slow.begin("c");
  EXPECT_FALSE(slow.has_place());
  EXPECT_TRUE(slow.may_go_on("c")) << "it began with a place";
  EXPECT_EQ(slow.held(), 2U);
}

TEST(SlowReports, AFailureMakesAnObjectSlowAndAQuickSuccessEndsThat) {
  SlowReports slow(4);
  slow.begin("a");
  EXPECT_EQ(slow.held(), 0U);
  slow.end("a", true);
  EXPECT_TRUE(slow.is_slow("a"));
  slow.begin("a");
  EXPECT_EQ(slow.held(), 1U);
  slow.end("a", false);
  EXPECT_FALSE(slow.is_slow("a"));
  EXPECT_EQ(slow.held(), 0U);
  EXPECT_EQ(slow.slow(), 0U);
}

TEST(SlowReports, OneWorkerServesAll) {
  SlowReports slow(1);
  slow.begin("a");
  EXPECT_TRUE(slow.may_go_on("a"));
  slow.end("a", true);
  EXPECT_TRUE(slow.has_place());
}

}  // namespace
}  // namespace gitops::reporter
