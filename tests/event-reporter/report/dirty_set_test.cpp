#include "event-reporter/report/dirty_set.hpp"

#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

struct DirtySetTest : testing::Test {
  Loop loop;
  WorkQueue queue{loop.get_executor(), 2};
  DirtySet dirty{queue, {.states = 3, .bytes = 100}};
  Clock::time_point t0{seconds(1000)};

  static std::vector<std::string> texts(const DirtyWork& work) {
    std::vector<std::string> out;
    for (const auto& state : work.states) out.push_back(state.text);
    return out;
  }
};

using Dirty = DirtySetTest;

TEST_F(Dirty, KeepsEveryStateOfAnotherMilestoneInOrder) {
  dirty.changed("a/x", "one", {1, 1}, t0);
  dirty.changed("a/x", "two", {1, 2}, t0 + seconds(1));
  dirty.changed("a/x", "two again", {1, 2}, t0 + seconds(2));
  const auto work = dirty.take("a/x");
  EXPECT_TRUE(work.live);
  EXPECT_EQ(work.since, t0);
  EXPECT_THAT(texts(work), ElementsAre("one", "two again"));
  EXPECT_EQ(dirty.kept_bytes(), 0U);
  EXPECT_TRUE(dirty.take("a/x").empty());
}

TEST_F(Dirty, OverTheLimitTheNewestOfEachOperationWins) {
  dirty.changed("a/x", "1a", {1, 1}, t0);
  dirty.changed("a/x", "1b", {1, 2}, t0);
  dirty.changed("a/x", "2", {2, 3}, t0);
  dirty.changed("a/x", "3", {3, 4}, t0);
  dirty.changed("a/x", "4", {4, 5}, t0);
  EXPECT_THAT(texts(dirty.take("a/x")), ElementsAre("2", "3", "4"));
}

TEST_F(Dirty, TextsThatDoNotFitAreReadLater) {
  dirty.changed("a/x", std::string(60, 'x'), {1, 1}, t0);
  dirty.changed("a/y", std::string(60, 'y'), {1, 1}, t0);
  EXPECT_EQ(dirty.kept_bytes(), 60U);
  const auto y = dirty.take("a/y");
  EXPECT_TRUE(y.live);
  EXPECT_TRUE(y.states.empty());
  EXPECT_EQ(dirty.take("a/x").states.size(), 1U);
  EXPECT_EQ(dirty.kept_bytes(), 0U);
}

// Such as after a take-over of its shard, while its report waits.
TEST_F(Dirty, MilestonesBehindAStateThatIsToBeReadAreKept) {
  dirty.changed("a/x", {}, {}, t0);
  dirty.changed("a/x", "one", {1, 1}, t0 + seconds(1));
  dirty.changed("a/x", "two", {1, 2}, t0 + seconds(2));
  const auto work = dirty.take("a/x");
  EXPECT_EQ(work.since, t0);
  EXPECT_THAT(texts(work), ElementsAre("one", "two"));
}

TEST_F(Dirty, ADeletionEndsWhatWasAndComesBeforeWhatFollows) {
  dirty.changed("a/x", "old", {1, 1}, t0);
  dirty.deleted("a/x", "tombstone", t0 + seconds(1));
  dirty.changed("a/x", "between", {1, 1}, t0 + seconds(2));
  dirty.deleted("a/x", "second tombstone", t0 + seconds(3));
  dirty.changed("a/x", "new", {1, 1}, t0 + seconds(4));
  const auto work = dirty.take("a/x");
  EXPECT_EQ(work.tombstone, "tombstone");
  EXPECT_THAT(texts(work), ElementsAre("new"));
}

TEST_F(Dirty, WhatCouldNotBeReportedComesBeforeWhatCameMeanwhile) {
  dirty.changed("a/x", "one", {1, 1}, t0);
  auto work = dirty.take("a/x");
  EXPECT_EQ(dirty.oldest(t0 + seconds(5)), seconds(5));
  dirty.changed("a/x", "two", {1, 2}, t0 + seconds(3));
  dirty.give_back("a/x", std::move(work));
  const auto again = dirty.take("a/x");
  EXPECT_EQ(again.since, t0);
  EXPECT_THAT(texts(again), ElementsAre("one", "two"));
}

TEST_F(Dirty, WhatWasDeletedMeanwhileIsNotReportedAsLive) {
  dirty.changed("a/x", "one", {1, 1}, t0);
  auto work = dirty.take("a/x");
  dirty.deleted("a/x", "tombstone", t0 + seconds(1));
  dirty.give_back("a/x", std::move(work));
  const auto again = dirty.take("a/x");
  EXPECT_FALSE(again.live);
  EXPECT_EQ(again.tombstone, "tombstone");
  EXPECT_EQ(dirty.kept_bytes(), 0U);
}

TEST_F(Dirty, StatesFromBeforeADeletionDoNotComeBackAfterIt) {
  dirty.changed("a/1", "old", {1, 1}, t0);
  auto work = dirty.take("a/1");
  dirty.deleted("a/1", "tombstone", t0);
  dirty.changed("a/1", "recreated", {1, 2}, t0);
  dirty.give_back("a/1", std::move(work));
  const auto again = dirty.take("a/1");
  EXPECT_EQ(again.tombstone, "tombstone");
  ASSERT_EQ(again.states.size(), 1U);
  EXPECT_EQ(again.states[0].text, "recreated");
  EXPECT_EQ(dirty.kept_bytes(), 0U);
}

// As after a restore of the cluster: everything is read again, and the list that follows tells states.
TEST_F(Dirty, StatesFromBeforeASecondReadingDoNotComeBackAfterIt) {
  dirty.changed("a/1", "of the lost future", {1, 2}, t0);
  auto work = dirty.take("a/1");
  dirty.changed("a/1", {}, {}, t0);
  dirty.changed("a/1", "restored", {1, 1}, t0);
  dirty.give_back("a/1", std::move(work));
  const auto again = dirty.take("a/1");
  EXPECT_THAT(texts(again), ElementsAre("restored"));
  EXPECT_EQ(dirty.kept_bytes(), 0U);
}

TEST_F(Dirty, AComparisonDropsNoStates) {
  dirty.changed("a/1", "one", {1, 1}, t0);
  auto work = dirty.take("a/1");
  dirty.touch("a/1", t0);
  dirty.changed("a/1", "two", {1, 2}, t0);
  dirty.give_back("a/1", std::move(work));
  EXPECT_THAT(texts(dirty.take("a/1")), ElementsAre("one", "two"));
}

TEST_F(Dirty, AKeyThatTheQueueRefusedEntersWhenThereIsRoom) {
  for (const auto* key : {"a/1", "a/2", "a/3"}) dirty.changed(key, "text", {1, 1}, t0);
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_EQ(dirty.overdue(), 1U);
  dirty.refill();
  EXPECT_EQ(dirty.overdue(), 1U);
  queue.stop();  // empties it; a stopped queue takes nothing
  dirty.refill();
  EXPECT_EQ(dirty.overdue(), 1U);
  EXPECT_EQ(dirty.size(), 3U);
}

// By age, not by name: a late name must not wait for ever.
TEST_F(Dirty, OfTheRefusedKeysTheOneWithTheOldestChangeEntersFirst) {
  int minute = 0;
  for (const auto* key : {"q/1", "q/2", "z/old", "m/next", "a/last"}) {
    dirty.changed(key, "text", {1, 1}, t0 + std::chrono::minutes(minute++));
  }
  EXPECT_EQ(dirty.overdue(), 3U);
  std::vector<std::string> order;
  while (const auto key = queue.take()) {
    order.push_back(*key);
    std::ignore = dirty.take(*key);
    dirty.done(*key);
    queue.done(*key);
    // Whoever comes now comes behind those that were refused.
    if (order.size() == 1) dirty.changed("a/new", "text", {1, 1}, t0 + std::chrono::hours(1));
    dirty.refill();
  }
  EXPECT_THAT(order, ElementsAre("q/1", "q/2", "z/old", "m/next", "a/last", "a/new"));
}

TEST_F(Dirty, TombstonesCountAsTextsAndTheirIdentityAlwaysFits) {
  const std::string small = R"({"metadata":{"name":"x"},"spec":{}})";
  const std::string large = R"({"kind":"Application","metadata":{"name":"y","namespace":"a",)"
                            R"("uid":"u-y","annotations":{"note":"long"}},"status":")" +
                            std::string(200, 's') + R"("})";
  dirty.deleted("a/x", small, t0);
  EXPECT_EQ(dirty.kept_bytes(), small.size());
  dirty.deleted("a/y", large, t0);
  const auto work = dirty.take("a/y");
  EXPECT_EQ(work.tombstone, R"({"kind":"Application","metadata":{"name":"y","namespace":"a",)"
                            R"("uid":"u-y","annotations":{}}})");
  EXPECT_EQ(dirty.kept_bytes(), small.size());
  dirty.give_back("a/y", work);
  EXPECT_EQ(dirty.kept_bytes(), small.size() + work.tombstone.size());
  dirty.drop([](std::string_view) { return true; });
  EXPECT_EQ(dirty.kept_bytes(), 0U);
}

TEST_F(Dirty, AnotherOwnersStatesAreForgottenButNotItsDeletions) {
  dirty.changed("a/1", "text", {1, 1}, t0);
  dirty.deleted("a/2", "tombstone", t0);
  dirty.changed("a/2", "text", {1, 1}, t0);
  dirty.drop_live([](std::string_view) { return true; });
  EXPECT_FALSE(dirty.contains("a/1"));
  const auto rest = dirty.take("a/2");
  EXPECT_FALSE(rest.live);
  EXPECT_EQ(rest.tombstone, "tombstone");
  EXPECT_EQ(dirty.kept_bytes(), 0U);
}

TEST_F(Dirty, OldestCountsWhatIsInWork) {
  EXPECT_EQ(dirty.oldest(t0), seconds(0));
  dirty.changed("a/1", "text", {1, 1}, t0);
  dirty.changed("a/2", "text", {1, 1}, t0 + seconds(2));
  std::ignore = dirty.take("a/1");
  EXPECT_EQ(dirty.oldest(t0 + seconds(3)), seconds(3));
  dirty.done("a/1");
  EXPECT_EQ(dirty.oldest(t0 + seconds(3)), seconds(1));
}

TEST_F(Dirty, WhatIsDroppedDuringItsReportDoesNotComeBack) {
  const auto all = [](std::string_view) { return true; };
  dirty.changed("a/x", "one", {1, 1}, t0);
  auto work = dirty.take("a/x");
  dirty.drop(all);
  dirty.give_back("a/x", std::move(work));
  EXPECT_FALSE(dirty.contains("a/x"));
  EXPECT_EQ(dirty.oldest(t0 + seconds(9)), seconds(0));
  dirty.changed("a/x", "two", {1, 2}, t0);
  work = dirty.take("a/x");
  dirty.drop(all);
  dirty.changed("a/x", "three", {1, 3}, t0);
  dirty.give_back("a/x", std::move(work));
  work = dirty.take("a/x");
  EXPECT_THAT(texts(work), ElementsAre("three"));
  dirty.give_back("a/x", std::move(work));
  EXPECT_THAT(texts(dirty.take("a/x")), ElementsAre("three")) << "only one report was dropped";
  EXPECT_EQ(dirty.kept_bytes(), 0U);
}

TEST_F(Dirty, WhatIsDroppedIsNotReportedAtAll) {
  dirty.changed("a/x", "one", {1, 1}, t0);
  dirty.deleted("a/y", "stone", t0);
  dirty.changed("b/x", "two", {1, 1}, t0);
  dirty.drop([](std::string_view key) { return key.starts_with("a/"); });
  EXPECT_TRUE(dirty.take("a/x").empty());
  EXPECT_TRUE(dirty.take("a/y").empty());
  EXPECT_EQ(dirty.overdue(), 1U);
  EXPECT_THAT(texts(dirty.take("b/x")), ElementsAre("two"));
  EXPECT_EQ(dirty.kept_bytes(), 0U);
}

}  // namespace
}  // namespace gitops::reporter
