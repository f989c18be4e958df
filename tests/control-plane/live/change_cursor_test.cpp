#include "control-plane/live/change_cursor.hpp"

#include <gmock/gmock.h>

namespace gitops::control_plane_server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> texts(const ReadingPlan& plan) {
  std::vector<std::string> found;
  for (const auto& part : plan.parts) {
    found.push_back(part.instance + " " + std::to_string(part.after) + "-" +
                    std::to_string(part.last));
  }
  return found;
}

TEST(ChangeCursor, IsAText) {
  const ChangeCursor cursor{.numbers = {{"a1", 7}, {"b2", 12}}};
  EXPECT_EQ(to_string(cursor), "a1:7,b2:12");
  EXPECT_EQ(read_cursor("a1:7,b2:12"), cursor);
  EXPECT_EQ(to_string(ChangeCursor()), "0");
  EXPECT_EQ(read_cursor("0"), ChangeCursor());
}

TEST(ChangeCursor, RefusesOtherTexts) {
  for (const auto* text : {"", ",", "a", "a:", ":1", "a:0", "a:-1", "a:1,", "a:1x", "A:1", "a b:1",
                           "a:99999999999999999999", "a:1,,b:2"}) {
    EXPECT_FALSE(read_cursor(text)) << text;
  }
  std::string many;
  for (int i = 0; i <= 1'000; ++i) many += (i == 0 ? "" : ",") + ("a" + std::to_string(i)) + ":1";
  EXPECT_FALSE(read_cursor(many));
}

TEST(ReadingPlan, HasWhatIsBehindTheCursor) {
  const std::vector<OutboxHead> heads{{"a", 1, 9}, {"b", 3, 5}, {"new", 1, 2}};
  const auto plan = plan_reading({.numbers = {{"a", 7}, {"b", 5}}}, heads, Vanished::are_known);
  EXPECT_THAT(texts(plan), ElementsAre("a 7-9", "new 0-2"));
  EXPECT_EQ(plan.changes, 4);
  EXPECT_FALSE(plan.has_gap);
  EXPECT_THAT(texts(plan_reading(cursor_at(heads), heads, Vanished::are_missed)), IsEmpty());
}

TEST(ReadingPlan, AGapIsWhatRetentionHasRemoved) {
  const auto has_gap = [](ChangeCursor cursor, const std::vector<OutboxHead>& heads) {
    return plan_reading(cursor, heads, Vanished::are_known).has_gap;
  };
  EXPECT_FALSE(has_gap({.numbers = {{"a", 4}}}, {{"a", 5, 9}}));
  EXPECT_TRUE(has_gap({.numbers = {{"a", 3}}}, {{"a", 5, 9}}));
  EXPECT_TRUE(has_gap({}, {{"a", 2, 9}})) << "a process whose first change is gone";
  EXPECT_TRUE(has_gap({.numbers = {{"a", 10}}}, {{"a", 5, 9}})) << "the database went back";
}

TEST(ReadingPlan, AProcessWithoutRowsHasEndedOrWasMissed) {
  const ChangeCursor cursor{.numbers = {{"a", 3}, {"b", 4}}};
  const std::vector<OutboxHead> heads{{"b", 1, 4}};
  EXPECT_FALSE(plan_reading(cursor, heads, Vanished::are_known).has_gap);
  EXPECT_TRUE(plan_reading(cursor, heads, Vanished::are_missed).has_gap);
}

}  // namespace
}  // namespace gitops::control_plane_server
