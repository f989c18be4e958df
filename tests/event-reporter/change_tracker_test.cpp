#include "event-reporter/change_tracker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event-reporter/shard.hpp"

namespace gitops::reporter {
namespace {

Digest digest(std::uint8_t value) {
  Digest out{};
  out[0] = value;
  return out;
}

// One of three replicas; "web" is of one shard, kElsewhere of another.
struct ChangeTrackerTest : testing::Test {
  Loop loop;
  Metrics metrics;
  WorkQueue queue{loop.get_executor(), 100};
  DirtySet dirty{queue, {}};
  Ledger ledger{loop.get_executor(), {}, metrics};
  ChangeTracker changes{loop.get_executor(), ledger, dirty, {.replicas = 3}, metrics};
  std::uint32_t shard = shard_of("web", 3);

  // Without anybody in between, so that it is held at once.
  void hold() {
    ledger.set_note("term of shard " + std::to_string(shard), "7");
    changes.claimed(shard, 7);
  }
};

TEST_F(ChangeTrackerTest, OnlyChangesInShardsHeldAreDue) {
  changes.changed("a/web", digest(1), "one", {});
  EXPECT_FALSE(dirty.contains("a/web"));
  hold();
  EXPECT_TRUE(dirty.take("a/web").live) << "it was seen before";
  changes.changed("a/web", digest(1), "one", {});
  EXPECT_TRUE(dirty.take("a/web").empty()) << "unchanged";
  changes.changed("a/web", digest(2), "two", {});
  EXPECT_EQ(dirty.take("a/web").states.size(), 1U);
  dirty.done("a/web");
  changes.changed("a/web", digest(3), "three", {});
  changes.released(shard);
  EXPECT_FALSE(dirty.contains("a/web"));
}

TEST_F(ChangeTrackerTest, WhatTheLedgerHasIsNotDue) {
  hold();
  ledger.store("a/web", {.uid = "u", .change = digest(1)});
  changes.changed("a/web", digest(1), "one", {});
  EXPECT_FALSE(dirty.contains("a/web"));
  changes.changed("a/web", digest(2), "two", {});
  EXPECT_TRUE(dirty.contains("a/web"));
}

TEST_F(ChangeTrackerTest, WhatWasReportedOnceIsReportedAsGoneByWhomeverDidSo) {
  ledger.store("a/web", {.uid = "u"});
  changes.changed("a/web", digest(1), "one", {});
  changes.changed("b/web", digest(1), "one", {});
  changes.deleted("a/web", "stone");
  changes.deleted("b/web", "stone");
  EXPECT_EQ(dirty.take("a/web").tombstone, "stone");
  EXPECT_FALSE(dirty.contains("b/web")) << "its shard is somebody else's";
  hold();
  EXPECT_EQ(dirty.take("b/web").tombstone, "stone") << "who may have died before telling it";
}

TEST_F(ChangeTrackerTest, WhatWasMadeAnewBeforeAShardIsTakenOverIsReportedBehindItsDeletion) {
  changes.changed("a/web", digest(1), "one", {});
  changes.deleted("a/web", "stone");
  changes.changed("a/web", digest(2), "two", {});
  hold();
  const auto work = dirty.take("a/web");
  EXPECT_EQ(work.tombstone, "stone");
  EXPECT_TRUE(work.live);
}

// The claim that starts anew takes its time, and the process may be killed meanwhile.
TEST_F(ChangeTrackerTest, AClaimThatDidNotGetThroughStartsAnewTheNextTime) {
  const auto note = "term of shard " + std::to_string(shard);
  ledger.set_note(note, "7");
  changes.claimed(shard, 9);
  EXPECT_FALSE(changes.owns("a/web"));
  EXPECT_EQ(ledger.note(note), "7");
  changes.released(shard);
  // What a new process finds in the ledger: not nobody between 7 and 9.
  changes.claimed(shard, 9);
  EXPECT_FALSE(changes.owns("a/web"));
}

// Others reported its objects while there were more replicas.
TEST_F(ChangeTrackerTest, TheOnlyReplicaStartsAnewWhenItWasOneOfSeveral) {
  ChangeTracker alone{loop.get_executor(), ledger, dirty, {.replicas = 1}, metrics};
  ledger.set_note("term of shard 0", "7");
  alone.claimed(0, 0);
  EXPECT_FALSE(alone.owns("a/web"));
  alone.released(0);
  ledger.set_note("term of shard 0", "0");
  alone.claimed(0, 0);
  EXPECT_TRUE(alone.owns("a/web"));
}

TEST_F(ChangeTrackerTest, WhatIsForgottenIsNeitherDueNorKnown) {
  hold();
  for (const auto* key : {"a/web", "b/web"}) {
    ledger.store(key, {.uid = "u"});
    changes.changed(key, digest(1), "one", {});
  }
  changes.deleted("a/web", "stone");
  EXPECT_EQ(changes.forget([](std::string_view key) { return key.starts_with("a/"); }), 1U);
  EXPECT_FALSE(dirty.contains("a/web"));
  EXPECT_FALSE(changes.sees("a/web"));
  EXPECT_FALSE(ledger.known().contains("a/web"));
  EXPECT_TRUE(dirty.contains("b/web"));
  EXPECT_TRUE(ledger.known().contains("b/web"));
}

}  // namespace
}  // namespace gitops::reporter
