#include "event-reporter/report/change_tracker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "event-reporter/shards/shard.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"
#include "tracker_doubles.hpp"

namespace gitops::reporter {
namespace {

Digest digest(std::uint8_t value) {
  Digest out{};
  out[0] = value;
  return out;
}

// One of three replicas; "web" is of one shard.
struct ChangeTrackerTest : testing::Test {
  Loop loop;
  Metrics metrics;
  ReportsDouble reports{loop.get_executor()};
  ObjectsDouble objects;
  DirtySet& dirty = reports.set;
  Ledger ledger{loop.get_executor(), {.path = {}}, metrics, [](std::string_view key) {
                  return group_of_key(key, 3);
                }};
  ChangeTracker changes{loop.get_executor(), ledger, reports, objects, {.replicas = 3}, metrics};
  std::uint32_t shard = shard_of("web", 3);

  // The key of an object in another shard than "web".
  [[nodiscard]] std::string in_another_shard() const {
    return shard_of("app-0", 3) == shard ? "a/app-1" : "a/app-0";
  }
  void hold_again() { changes.claimed(shard, 7); }
  // Without anybody in between, so that it is held at once.
  void hold() {
    ledger.set_note("term of shard " + std::to_string(shard), "7");
    changes.claimed(shard, 7);
  }
};

TEST_F(ChangeTrackerTest, OnlyChangesInShardsHeldAreDue) {
  changes.changed("a/web", "u", digest(1), "one", {});
  EXPECT_FALSE(dirty.contains("a/web"));
  hold();
  EXPECT_TRUE(dirty.take("a/web").live) << "it was seen before";
  changes.changed("a/web", "u", digest(1), "one", {});
  EXPECT_TRUE(dirty.take("a/web").empty()) << "unchanged";
  changes.changed("a/web", "u", digest(2), "two", {});
  EXPECT_EQ(dirty.take("a/web").states.size(), 1U);
  dirty.done("a/web");
  changes.changed("a/web", "u", digest(3), "three", {});
  changes.released(shard);
  EXPECT_EQ(dirty.take("a/web").states.size(), 1U) << "for the inventory";
  dirty.done("a/web");
  changes.changed("a/web", "u", digest(4), "four", {});
  EXPECT_FALSE(dirty.contains("a/web"));
}

// It would have no event, so an idle reporter would never hear of the control plane.
TEST_F(ChangeTrackerTest, AHeartbeatIsNotThatOfAnObjectThatCannotBeRead) {
  hold();
  const auto settle = [&](const std::string& key) {
    EXPECT_TRUE(dirty.take(key).live);
    dirty.done(key);
  };
  for (const auto* key : {"a/web", "b/web"}) {
    changes.changed(key, "u", digest(1), "one", {});
    settle(key);
  }
  changes.unreadable("a/web");
  changes.send_heartbeat();
  EXPECT_FALSE(dirty.contains("a/web"));
  settle("b/web");
  changes.changed("a/web", "u", digest(2), "two", {});
  settle("a/web");
  changes.unreadable("b/web");
  changes.send_heartbeat();
  EXPECT_FALSE(dirty.contains("b/web"));
  settle("a/web");
}

// A managed cluster may be away for days. What is due already would say nothing more either.
TEST_F(ChangeTrackerTest, AHeartbeatIsThatOfAnObjectThatCanBeReportedNow) {
  hold();
  const auto settle = [&](const std::string& key) {
    EXPECT_TRUE(dirty.take(key).live);
    dirty.done(key);
  };
  for (const auto* key : {"a/web", "b/web"}) {
    changes.changed(key, "u", digest(1), "one", {});
    settle(key);
  }
  for (const auto& [away, other] : {std::pair{"a/web", "b/web"}, std::pair{"b/web", "a/web"}}) {
    objects.away = {away};
    changes.send_heartbeat();
    EXPECT_FALSE(dirty.contains(away));
    settle(other);
    objects.away = {};
    changes.compare_again(away);
    changes.send_heartbeat();
    settle(other);
    settle(away);
  }
  objects.away = {"a/web", "b/web"};
  changes.send_heartbeat();
  EXPECT_EQ(dirty.size(), 0U);
}

// Else a reporter of one application with a resource that is too large would never hear of a restore.
TEST_F(ChangeTrackerTest, AHeartbeatIsThatOfAnApplicationWithARefusedResource) {
  const ResourceId part{
      .group = "apps", .version = "v1", .kind = "Deployment", .ns = "shop", .name = "web"};
  hold();
  changes.changed("a/web", "u", digest(1), "one", {});
  EXPECT_TRUE(dirty.take("a/web").live);
  dirty.done("a/web");
  LedgerEntry entry{.uid = "u"};
  entry.announce(digest(1), 7);
  entry.acknowledge(digest(1));
  entry.announce(part, digest(2), 7);
  entry.refuse(part, 413, wall_now(), "too large");
  ledger.store("a/web", entry);
  changes.send_heartbeat();
  EXPECT_TRUE(dirty.take("a/web").heartbeat);
  dirty.done("a/web");
  entry.announce(digest(3), 8);
  entry.refuse(400, wall_now(), "no");
  ledger.store("a/web", entry);
  changes.send_heartbeat();
  EXPECT_FALSE(dirty.contains("a/web"));
}

// It made room for a successor with the same name.
TEST_F(ChangeTrackerTest, ARefusedDeletionInTheInventoryIsRetriedAtTheStart) {
  LedgerEntry old{.uid = "old"};
  old.announce(kGone, 7);
  old.refuse(400, wall_now(), "no");
  ledger.store(inventory_row("a/web", "old"), old);
  test::run_coro([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TaskGroup group(executor, [](const auto&, const auto&) {});
    ChangeTracker other{executor, ledger, reports, objects, {.replicas = 3}, metrics};
    other.start(group);
    const auto grant = other.grant("a/web");
    CO_ASSERT_TRUE(grant.has_value());
    EXPECT_TRUE(grant->retry_refused);
    group.cancel();
    co_await group.join();
  });
}

TEST_F(ChangeTrackerTest, AStateThatMayBeOutdatedIsReadInsteadOfItsText) {
  using Report = ChangeTracker::Report;
  hold();
  changes.changed("a/web", "u", digest(1), "one", {.state = 1});
  changes.changed("a/web", "u", digest(2), "two", {.state = 2}, Report::as_read);
  auto work = dirty.take("a/web");
  EXPECT_TRUE(work.live);
  EXPECT_TRUE(work.states.empty());
  dirty.done("a/web");
  changes.changed("a/web", "u", digest(3), "three", {.state = 3});
  EXPECT_EQ(dirty.take("a/web").states.size(), 1U);
}

TEST_F(ChangeTrackerTest, ATakeOverFromAnotherReplicaIsAnnouncedBeforeTheShardIsHeld) {
  std::vector<std::string> calls;
  ChangeTracker* tracker = nullptr;
  objects.on_taken_over = [&](std::uint32_t taken) {
    calls.push_back(std::to_string(taken) + (tracker->owns("a/web") ? " held" : " not held"));
  };
  test::run_coro([&]() -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor, [](const auto&, const auto&) {});
    ledger.set_note("term of shard " + std::to_string(shard), "7");
    ChangeTracker other{
        co_await asio::this_coro::executor, ledger, reports, objects, {.replicas = 3}, metrics};
    tracker = &other;
    other.start(group);
    other.claimed(shard, 7);
    EXPECT_TRUE(other.owns("a/web"));
    EXPECT_TRUE(calls.empty()) << "nobody was between";
    other.released(shard);
    other.claimed(shard, 9);
    EXPECT_TRUE(
        co_await test::eventually([&] { return other.owns("a/web"); }, "the claimed shard"));
    EXPECT_THAT(calls, testing::ElementsAre(std::to_string(shard) + " not held"));
    group.cancel();
    co_await group.join();
  });
}

TEST_F(ChangeTrackerTest, WhatTheLedgerHasIsNotDue) {
  hold();
  ledger.store("a/web", {.uid = "u", .change = digest(1)});
  changes.changed("a/web", "u", digest(1), "one", {});
  EXPECT_FALSE(dirty.contains("a/web"));
  changes.changed("a/web", "u", digest(2), "two", {});
  EXPECT_TRUE(dirty.contains("a/web"));
}

TEST_F(ChangeTrackerTest, WhatWasReportedOnceIsReportedAsGoneByWhomeverDidSo) {
  ledger.store("a/web", {.uid = "u"});
  changes.changed("a/web", "u", digest(1), "one", {});
  changes.changed("b/web", "u", digest(1), "one", {});
  changes.deleted("a/web", "stone");
  changes.deleted("b/web", "stone");
  EXPECT_EQ(dirty.take("a/web").tombstone, "stone");
  EXPECT_FALSE(dirty.contains("b/web")) << "its shard is somebody else's";
  hold();
  EXPECT_TRUE(dirty.contains("b/web")) << "who may have died before telling it";
  EXPECT_THAT(changes.predecessors("b/web"), testing::ElementsAre("u"));
}

// Whose deletion nobody saw: the first list after a restart has another object of its name.
TEST_F(ChangeTrackerTest, WhatWasReportedOnceIsReportedAsGoneAlsoWhenItHasASuccessor) {
  ChangeTracker tracker{loop.get_executor(), ledger, reports, objects, {.replicas = 3}, metrics};
  ledger.store("a/web", {.uid = "old"});
  tracker.changed("a/web", "old", digest(1), "one", {});
  EXPECT_FALSE(dirty.contains("a/web"));
  tracker.changed("a/web", "new", digest(2), "two", {});
  const auto work = dirty.take("a/web");
  EXPECT_EQ(work.tombstone, "a/web old");
  EXPECT_FALSE(work.live) << "its shard is somebody else's";
}

TEST_F(ChangeTrackerTest, WhatOthersAddToWhatItReportedIsRecorded) {
  ledger.store("a/web", {.uid = "u", .change = digest(1)});
  changes.changed("a/web", "u", digest(1), "one", {});
  EXPECT_TRUE(ledger.inventory().empty()) << "that it knows itself";
  changes.changed("a/web", "u", digest(2), "two", {});
  EXPECT_TRUE(ledger.inventory().contains(inventory_row("a/web", "u")));
}

TEST_F(ChangeTrackerTest, AGrantEndsWithTheNextClaimOrReleaseOfItsShard) {
  const auto before = changes.grant("a/web");
  ASSERT_TRUE(before);
  EXPECT_FALSE(before->owner);
  EXPECT_TRUE(changes.holds(*before));
  hold();
  EXPECT_FALSE(changes.holds(*before));
  const auto held = changes.grant("a/web");
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->owner);
  changes.released(shard);
  EXPECT_FALSE(changes.holds(*held));
  hold_again();
  EXPECT_FALSE(changes.holds(*held)) << "another term";
  EXPECT_TRUE(changes.grant("a/web")->owner);
}

TEST_F(ChangeTrackerTest, NobodyReportsAShardThatIsBeingTakenOver) {
  const auto before = changes.grant("a/web");
  changes.claimed(shard, 7);
  EXPECT_FALSE(changes.holds(*before));
  EXPECT_FALSE(changes.grant("a/web"));
  changes.released(shard);
  EXPECT_TRUE(changes.grant("a/web"));
}

TEST_F(ChangeTrackerTest, AClaimAndAReleaseCancelTheReportsOfTheShard) {
  std::vector<std::string> cancelled;
  reports.on_cancel = [&](const KeyFilter& which) {
    for (const auto* key : {"a/web", "b/web"}) {
      if (which(key)) cancelled.emplace_back(key);
    }
    EXPECT_FALSE(which(in_another_shard()));
  };
  ChangeTracker tracker{loop.get_executor(), ledger, reports, objects, {.replicas = 3}, metrics};
  tracker.claimed(shard, 7);
  EXPECT_THAT(cancelled, testing::ElementsAre("a/web", "b/web"));
  tracker.released(shard);
  EXPECT_EQ(cancelled.size(), 4U);
}

TEST_F(ChangeTrackerTest, EverythingOfTheHeldShardsIsDueAgainAsIfNothingWasAcknowledged) {
  hold();
  LedgerEntry entry{.uid = "u", .change = digest(1)};
  entry.announce(digest(5), 40);
  entry.acknowledge(digest(5));
  ledger.store("a/web", entry);
  ledger.store(in_another_shard(), {.uid = "o", .change = digest(1)});
  changes.changed("a/web", "u", digest(1), "one", {});
  changes.changed(in_another_shard(), "o", digest(1), "one", {});
  EXPECT_FALSE(dirty.contains("a/web"));
  const auto before = changes.grant("a/web");
  EXPECT_THAT(changes.held_shards(), testing::ElementsAre(shard));
  EXPECT_EQ(changes.unannounced(), 0U);
  test::run_coro([&]() -> Task<> {
    co_await changes.report_all_again();
    const auto stored = co_await ledger.load("a/web");
    CO_ASSERT_OK(stored);
    EXPECT_FALSE(stored->application->has(digest(5)));
    EXPECT_EQ(stored->sequence, 40U) << "the next one is above it";
  });
  EXPECT_FALSE(changes.holds(*before)) << "a report in flight must not acknowledge the old entry";
  EXPECT_TRUE(dirty.take("a/web").live);
  EXPECT_FALSE(dirty.contains(in_another_shard()));
  EXPECT_TRUE(ledger.known().at(in_another_shard()).change);
}

// It was released meanwhile, and nobody else held it: the term alone would show that nothing is due.
TEST_F(ChangeTrackerTest, AShardThatIsNotHeldWhenEverythingIsDueAgainIsStartedOver) {
  hold();
  LedgerEntry entry{.uid = "u", .change = digest(1)};
  entry.announce(digest(5), 40);
  entry.acknowledge(digest(5));
  ledger.store("a/web", entry);
  changes.changed("a/web", "u", digest(1), "one", {});
  EXPECT_FALSE(dirty.contains("a/web"));
  changes.released(shard);
  test::run_coro([&]() -> Task<> { co_await changes.report_all_again(); });
  changes.claimed(shard, 7);
  EXPECT_EQ(changes.awaiting_take_over(), 1U);
  EXPECT_THAT(changes.held_shards(), testing::IsEmpty());
}

TEST_F(ChangeTrackerTest, AnObjectThatCannotBeReadIsNotWaitedForUntilItChanges) {
  hold();
  changes.changed("a/web", "u", digest(1), "one", {});
  EXPECT_EQ(changes.unannounced(), 1U);
  changes.unreadable("a/web");
  EXPECT_EQ(changes.unannounced(), 0U);
  changes.changed("a/web", "u", digest(2), "two", {});
  EXPECT_EQ(changes.unannounced(), 1U);
}

TEST_F(ChangeTrackerTest, ObjectsWithoutAnEventAreCounted) {
  changes.changed("a/web", "u", digest(1), "one", {});
  EXPECT_EQ(changes.unannounced(), 0U) << "its shard is somebody else's";
  hold();
  EXPECT_EQ(changes.unannounced(), 1U);
  ledger.store("a/web", {.uid = "u", .sequence = 7});
  EXPECT_EQ(changes.unannounced(), 0U);
}

TEST_F(ChangeTrackerTest, ObjectsWithoutAnEventThatCannotBeReadNowAreTold) {
  hold();
  changes.changed("a/web", "u", digest(1), "one", {});
  changes.changed("b/web", "v", digest(1), "one", {});
  EXPECT_THAT(changes.unannounced_away(), testing::IsEmpty());
  objects.away = {"b/web"};
  EXPECT_EQ(changes.unannounced(), 2U);
  EXPECT_THAT(changes.unannounced_away(), testing::ElementsAre("b/web"));
  ledger.store("b/web", {.uid = "v", .sequence = 7});
  EXPECT_THAT(changes.unannounced_away(), testing::IsEmpty());
}

TEST_F(ChangeTrackerTest, ThePresentSequenceIsNotAboveTheLimitOfAHeldShard) {
  const auto past = wall_now() - std::chrono::hours(1);
  changes.limit_sequences([&](std::uint32_t) { return past; });
  EXPECT_GT(changes.present_sequence(), sequence_of(past)) << "no shard is held";
  hold();
  EXPECT_EQ(changes.present_sequence(), sequence_of(past));
}

TEST_F(ChangeTrackerTest, AnOwnersSequenceIsAboveTheFloorAndAnothersFollowsItsOwnLast) {
  const WallTime noon{std::chrono::milliseconds(1'772'625'600'000)};
  const Sequence now = sequence_of(noon);
  LedgerEntry entry{.uid = "u"};
  entry.announce(digest(1), now + 100);
  const auto next = [&](WallTime at) {
    return changes.next(*changes.grant("a/web"), "a/web", at, entry);
  };
  EXPECT_EQ(next(noon + std::chrono::hours(1)), now + 101);
  ledger.set_note("term of shard " + std::to_string(shard), "7");
  changes.claimed(shard, 7, now + 5'000);
  EXPECT_EQ(next(noon), now + 5'000);
  EXPECT_EQ(next(noon + std::chrono::hours(1)), sequence_of(noon + std::chrono::hours(1)));
}

// The clock is ahead, and this replica stood in for another one, which was further ahead.
TEST_F(ChangeTrackerTest, AnOwnersSequenceDoesNotRunAheadOfItsLease) {
  const WallTime noon{std::chrono::milliseconds(1'772'625'600'000)};
  changes.limit_sequences([&](std::uint32_t of) {
    EXPECT_EQ(of, shard);
    return noon;
  });
  const Sequence now = sequence_of(noon);
  ledger.set_note("term of shard " + std::to_string(shard), "7");
  changes.claimed(shard, 7, now - 1'000'000);
  const auto next = [&](const LedgerEntry& entry) {
    return changes.next(*changes.grant("a/web"), "a/web", noon + std::chrono::hours(1), entry);
  };
  EXPECT_EQ(next({.uid = "u"}), now);
  EXPECT_EQ(next({.uid = "u", .sequence = now + 7}), now + 8) << "its own last one counts";
  ledger.store("a/other", {.uid = "o", .sequence = now + 40});
  ledger.erase("a/other");
  EXPECT_EQ(next({.uid = "u"}), now + 41);
  ledger.store(in_another_shard(), {.uid = "f", .sequence = now + 3'600'000'000ULL});
  ledger.erase(in_another_shard());
  EXPECT_LE(next({.uid = "u"}), now + 100'000) << "the next holder of the Lease begins there";
  EXPECT_GE(next({.uid = "u"}), now + 41);
}

// An object that a restore of the cluster brings back under its uid has no entry any more. The limit of
// its shard stays where it is until the Lease is renewed.
TEST_F(ChangeTrackerTest, NoSequenceOfAnObjectIsUsedAgainWhenItComesBack) {
  const WallTime noon{std::chrono::milliseconds(1'772'625'600'000)};
  changes.limit_sequences([&](std::uint32_t) { return noon; });
  const Sequence now = sequence_of(noon);
  ledger.set_note("term of shard " + std::to_string(shard), "7");
  changes.claimed(shard, 7, now - 1'000'000);
  // This replica stood in for another one, which was far ahead.
  ledger.store(in_another_shard(), {.uid = "f", .sequence = now + 3'600'000'000ULL});
  ledger.erase(in_another_shard());
  Sequence last = 0;
  for (int times = 0; times < 3; ++times) {
    LedgerEntry entry{.uid = "u"};
    for (const auto& content : {digest(1), digest(2), kGone}) {
      const auto fresh = changes.next(*changes.grant("a/web"), "a/web", noon, entry);
      EXPECT_GT(entry.announce(content, fresh), last);
      EXPECT_LE(fresh, now + 100'000);
      last = fresh;
    }
    ledger.store("a/web", entry);
    ledger.erase("a/web");
  }
}

TEST_F(ChangeTrackerTest, WhatWasRefusedIsDueOnCommand) {
  hold();
  LedgerEntry entry{.uid = "u", .change = digest(1)};
  entry.announce(digest(1), 5);
  entry.refuse(400, {}, "no");
  ledger.store("a/web", entry);
  changes.changed("a/web", "u", digest(1), "one", {});
  EXPECT_FALSE(dirty.contains("a/web"));
  EXPECT_FALSE(changes.grant("a/web")->retry_refused);
  EXPECT_EQ(changes.retry_refused(), 1U);
  EXPECT_TRUE(dirty.take("a/web").live);
  EXPECT_TRUE(changes.grant("a/web")->retry_refused);
  changes.retried(*changes.grant("a/web"), "a/web");
  EXPECT_FALSE(changes.grant("a/web")->retry_refused);
}

// As after a restart: the first list comes before the Lease, and the object is looked at for parts that are gone.
TEST_F(ChangeTrackerTest, WhatWasRefusedIsRetriedWithTheShardAlsoAfterAReportWithoutIt) {
  LedgerEntry entry{.uid = "u", .change = digest(1)};
  entry.announce(digest(1), 5);
  entry.refuse(400, {}, "no");
  ledger.store("a/web", entry);
  changes.changed("a/web", "u", digest(1), "one", {});
  EXPECT_EQ(changes.retry_refused(), 1U);
  const auto without_shard = changes.grant("a/web");
  EXPECT_FALSE(without_shard->owner);
  EXPECT_TRUE(without_shard->retry_refused);
  changes.retried(*without_shard, "a/web");
  EXPECT_FALSE(changes.grant("a/web")->retry_refused);
  hold();
  EXPECT_TRUE(dirty.take("a/web").live);
  EXPECT_TRUE(changes.grant("a/web")->retry_refused);
}

TEST_F(ChangeTrackerTest, ARefusedDeletionIsDueOnCommandAndNoOtherIsMadeUp) {
  ChangeTracker tracker{loop.get_executor(), ledger, reports, objects, {.replicas = 3}, metrics};
  LedgerEntry gone{.uid = "u"};
  gone.announce(kGone, 5);
  gone.refuse(400, {}, "no");
  ledger.store("a/web", gone);
  LedgerEntry unseen{.uid = "v"};
  unseen.announce(digest(1), 5);
  unseen.refuse(400, {}, "no");
  ledger.store("b/web", unseen);  // its cluster may be away
  EXPECT_EQ(tracker.retry_refused(), 2U);
  EXPECT_EQ(dirty.take("a/web").tombstone, "a/web u");
  EXPECT_FALSE(dirty.contains("b/web"));
}

// Its own ledger is gone with the replica that reported it.
TEST_F(ChangeTrackerTest, WhatOthersReportedIsMissedToo) {
  changes.changed("a/web", "u", digest(1), "one", {});
  ChangeTracker next{loop.get_executor(), ledger, reports, objects, {.replicas = 1}, metrics};
  next.claimed(0, 0);
  EXPECT_TRUE(next.knows("a/web"));
  const auto missing =
      next.missing([&](std::string_view key) { return !next.sees(std::string(key)); });
  EXPECT_THAT(missing, testing::ElementsAre(std::pair("a/web", "u")));
  ledger.set_note("term of shard 0", "0");
  next.claimed(0, 0);
  next.missed("a/web", "u", "stone");
  EXPECT_EQ(dirty.take("a/web").tombstone, "stone");
}

TEST_F(ChangeTrackerTest, WhatIsMissedInAShardOfAnotherIsReportedWhenItIsTakenOver) {
  changes.changed("a/web", "u", digest(1), "one", {});
  ChangeTracker next{loop.get_executor(), ledger, reports, objects, {.replicas = 3}, metrics};
  next.missed("a/web", "u", "stone");
  EXPECT_FALSE(dirty.contains("a/web"));
  ledger.set_note("term of shard " + std::to_string(shard), "7");
  next.claimed(shard, 7);
  EXPECT_TRUE(dirty.contains("a/web"));
  EXPECT_THAT(next.predecessors("a/web"), testing::ElementsAre("u"));
}

// Its first list may not be complete yet.
TEST_F(ChangeTrackerTest, WhatIsNeitherSeenNorMissedIsNotReportedGone) {
  changes.changed("a/web", "u", digest(1), "one", {});
  ChangeTracker next{loop.get_executor(), ledger, reports, objects, {.replicas = 3}, metrics};
  ledger.set_note("term of shard " + std::to_string(shard), "7");
  next.claimed(shard, 7);
  EXPECT_FALSE(dirty.contains("a/web"));
  next.changed("a/web", "u", digest(1), "one", {});
  EXPECT_TRUE(dirty.contains("a/web")) << "to be made its own";
}

TEST_F(ChangeTrackerTest, WhatHadTheNameOfSomethingThatIsThereIsMissedToo) {
  changes.changed("a/web", "u", digest(1), "one", {});
  ChangeTracker next{loop.get_executor(), ledger, reports, objects, {.replicas = 1}, metrics};
  ledger.set_note("term of shard 0", "0");
  next.claimed(0, 0);
  next.changed("a/web", "v", digest(2), "two", {});
  EXPECT_THAT(next.predecessors("a/web"), testing::ElementsAre("u"));
}

TEST_F(ChangeTrackerTest, WhatWasRecreatedBeforeAShardIsTakenOverHasItsPredecessors) {
  changes.changed("a/web", "u", digest(1), "one", {});
  changes.deleted("a/web", "stone");
  changes.changed("a/web", "v", digest(2), "two", {});
  changes.changed("a/web", "w", digest(3), "three", {});
  hold();
  EXPECT_THAT(changes.predecessors("a/web"), testing::ElementsAre("u", "v"));
  EXPECT_TRUE(dirty.take("a/web").live);
}

// The claim that starts over takes its time, and the process may be killed meanwhile.
TEST_F(ChangeTrackerTest, AClaimThatDidNotGetThroughStartsOverTheNextTime) {
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

// Another replica held the shard meanwhile, and may have reported states of the deleted object.
TEST(ChangeTrackerClaims, ADeletionThatWasAnnouncedInAnEarlierTermIsAnnouncedAgain) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    ReportsDouble reports(executor);
    ObjectsDouble objects;
    Ledger ledger{executor, {}, metrics};
    CO_ASSERT_OK(co_await ledger.open());
    ChangeTracker changes{executor, ledger, reports, objects, {.replicas = 3}, metrics};
    TaskGroup tasks(executor);
    changes.start(tasks);
    const auto shard = shard_of("web", 3);
    const auto row = inventory_row("a/web", "u");
    LedgerEntry gone{.uid = "u"};
    gone.announce(kGone, 5);
    ledger.store(row, gone);
    ledger.set_note("term of shard " + std::to_string(shard), "7");
    const auto claim = [&](Term term) -> Task<> {
      changes.claimed(shard, term, 100);
      EXPECT_TRUE(
          co_await test::eventually([&] { return changes.owns("a/web"); }, "the claimed shard"));
    };
    const auto announce = [&](Sequence fresh) -> Task<Sequence> {
      auto entry = co_await ledger.load(row);
      if (!entry) co_return 0;
      co_return entry->announce(kGone, fresh);
    };
    co_await claim(8);
    EXPECT_EQ(co_await announce(100), 5U) << "nobody was in between";
    co_await claim(10);
    EXPECT_EQ(co_await announce(100), 100U);
    EXPECT_TRUE(ledger.inventory().at(row).gone) << "it is still known to be deleted";
    tasks.cancel();
    co_await tasks.join();
  });
}

// Others reported its objects while there were more replicas.
TEST_F(ChangeTrackerTest, TheOnlyReplicaStartsOverWhenItWasOneOfSeveral) {
  ChangeTracker alone{loop.get_executor(), ledger, reports, objects, {.replicas = 1}, metrics};
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
    changes.changed(key, "u", digest(1), "one", {});
  }
  EXPECT_EQ(changes.owned(), 2U);
  changes.deleted("a/web", "stone");
  EXPECT_EQ(changes.owned(), 1U);
  changes.changed("a/web", "u", digest(1), "one", {});
  EXPECT_EQ(changes.forget([](std::string_view key) { return key.starts_with("a/"); }), 1U);
  EXPECT_FALSE(dirty.contains("a/web"));
  EXPECT_FALSE(changes.sees("a/web"));
  EXPECT_FALSE(ledger.known().contains("a/web"));
  EXPECT_TRUE(dirty.contains("b/web"));
  EXPECT_TRUE(ledger.known().contains("b/web"));
  EXPECT_EQ(changes.owned(), 1U);
  changes.released(shard);
  EXPECT_EQ(changes.owned(), 0U);
}

}  // namespace
}  // namespace gitops::reporter
