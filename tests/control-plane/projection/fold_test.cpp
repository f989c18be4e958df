#include "control-plane/projection/fold.hpp"

#include <gtest/gtest.h>

namespace gitops::control_plane_server {
namespace {

// An event about the Application "shop" with a body and a sequence.
Event event_of(std::int64_t sequence, const std::string& body = "v1") {
  Event event;
  auto& state = event.state;
  state.key = {.runtime = "prod",
               .group = "argoproj.io",
               .kind = "Application",
               .object_namespace = "argocd",
               .name = "shop"};
  state.uid = "u1";
  state.sequence = sequence;
  state.event_id = "e" + std::to_string(sequence);
  state.changed_at = 1000 + sequence;
  state.seen_at = 1000 + sequence;
  state.sync = SyncStatus::synced;
  state.health = HealthStatus::healthy;
  state.revision = "aaa";
  state.body_digest = body;
  state.labels_digest = "l";
  event.body.live = body;
  event.labels = {{"team", "a"}};
  return event;
}

Event deletion_of(std::int64_t sequence) {
  auto event = event_of(sequence, "gone");
  event.is_deletion = true;
  event.state.presence = Presence::gone;
  return event;
}

ObjectState stored(const Event& event) {
  auto state = fold(std::nullopt, event).state;
  state.id = 5;
  return state;
}

TEST(Fold, AFirstEventIsStoredWhole) {
  const auto effects = fold(std::nullopt, event_of(7));
  EXPECT_EQ(effects.outcome, Outcome::stored);
  EXPECT_EQ(effects.state.sequence, 7);
  ASSERT_TRUE(effects.body);
  EXPECT_EQ(effects.body->live, "v1");
  ASSERT_TRUE(effects.labels);
  ASSERT_TRUE(effects.timeline);
  EXPECT_EQ(effects.timeline->step, TimelineStep::created);
  EXPECT_TRUE(effects.is_visible);
}

TEST(Fold, AnOlderSequenceIsStaleAndChangesNothing) {
  const auto current = stored(event_of(7));
  const auto effects = fold(current, event_of(6, "older"));
  EXPECT_EQ(effects.outcome, Outcome::stale);
  EXPECT_EQ(effects.state, current);
  EXPECT_FALSE(effects.body);
  EXPECT_FALSE(effects.is_visible);
}

TEST(Fold, TheSameSequenceIsADuplicateThatRefreshesTheLastActivity) {
  const auto current = stored(event_of(7));
  auto heartbeat = event_of(7);
  heartbeat.state.seen_at = 9999;
  const auto effects = fold(current, heartbeat);
  EXPECT_EQ(effects.outcome, Outcome::duplicate);
  EXPECT_EQ(effects.state.seen_at, 9999);
  EXPECT_EQ(effects.state.changed_at, current.changed_at);
  EXPECT_FALSE(effects.timeline);
}

TEST(Fold, WithoutSequencesTheLastToArriveCounts) {
  const auto current = stored(event_of(0));
  EXPECT_EQ(fold(current, event_of(0)).outcome, Outcome::duplicate);
  const auto effects = fold(current, event_of(0, "v2"));
  EXPECT_EQ(effects.outcome, Outcome::stored);
  EXPECT_EQ(effects.body->live, "v2");
}

// The clock of a reporter's machine ran ahead, and was mended when the reporter had lost its ledger.
TEST(Fold, ASequenceAheadOfTimeKeepsNoLaterEventOut) {
  constexpr Micros kMinute = 60'000'000;
  constexpr Micros kNow = 1'800'000'000'000'000;
  const auto arriving = [](Micros sequence, const std::string& body) {
    auto event = event_of(sequence, body);
    event.state.seen_at = kNow;
    return event;
  };
  const auto ahead = stored(arriving(kNow + 60 * kMinute, "v1"));
  const auto effects = fold(ahead, arriving(kNow - kMinute, "v2"));
  EXPECT_EQ(effects.outcome, Outcome::stored);
  EXPECT_EQ(effects.state.sequence, kNow - kMinute);
  ASSERT_TRUE(effects.body);
  EXPECT_EQ(effects.body->live, "v2");
  auto deletion = deletion_of(kNow);
  deletion.state.seen_at = kNow;
  EXPECT_EQ(fold(ahead, deletion).state.presence, Presence::gone);
  // A reporter that has its ledger continues above it, and the skew of usual clocks is less.
  EXPECT_EQ(fold(ahead, arriving(kNow + 50 * kMinute, "v2")).outcome, Outcome::stale);
  const auto skewed = stored(arriving(kNow + 5 * kMinute, "v1"));
  EXPECT_EQ(fold(skewed, arriving(kNow, "v2")).outcome, Outcome::stale);
}

TEST(Fold, OnlyAMilestoneHasATimelineRowAndAChangeTime) {
  const auto current = stored(event_of(7));
  const auto quiet = fold(current, event_of(8, "v2"));
  EXPECT_FALSE(quiet.timeline);
  EXPECT_EQ(quiet.state.changed_at, current.changed_at);
  EXPECT_TRUE(quiet.is_visible);
  auto degraded = event_of(9);
  degraded.state.health = HealthStatus::degraded;
  const auto loud = fold(current, degraded);
  ASSERT_TRUE(loud.timeline);
  EXPECT_EQ(loud.timeline->step, TimelineStep::changed);
  EXPECT_EQ(loud.timeline->sequence, 9);
  EXPECT_EQ(loud.state.changed_at, 1009);
}

TEST(Fold, ADeletionKeepsWhatWasKnown) {
  const auto effects = fold(stored(event_of(7)), deletion_of(8));
  EXPECT_EQ(effects.outcome, Outcome::stored);
  EXPECT_EQ(effects.state.presence, Presence::gone);
  EXPECT_EQ(effects.state.sequence, 8);
  EXPECT_EQ(effects.state.revision, "aaa");
  EXPECT_FALSE(effects.body);
  EXPECT_EQ(effects.timeline->step, TimelineStep::gone);
}

TEST(Fold, ADeletionOfAnUnknownObjectKeepsOlderEventsOut) {
  const auto gone = fold(std::nullopt, deletion_of(8));
  EXPECT_EQ(gone.outcome, Outcome::stored);
  EXPECT_EQ(gone.state.presence, Presence::gone);
  EXPECT_EQ(fold(gone.state, event_of(7)).outcome, Outcome::stale);
  EXPECT_EQ(fold(gone.state, deletion_of(8)).outcome, Outcome::duplicate);
}

TEST(Fold, AnotherUidIsANewObject) {
  auto again = event_of(9);
  again.state.uid = "u2";
  const auto effects = fold(stored(event_of(7)), again);
  EXPECT_EQ(effects.outcome, Outcome::stored);
  EXPECT_EQ(effects.state.uid, "u2");
  EXPECT_EQ(effects.timeline->step, TimelineStep::recreated);
}

TEST(Fold, ADeletionEndsOnlyItsOwnUid) {
  auto current = stored(event_of(7));
  current.uid = "u2";
  EXPECT_EQ(fold(current, deletion_of(9)).outcome, Outcome::stale);
}

// Its creation is still under way, and must not bring it back.
TEST(Fold, ADeletionOfAnUnknownUidRaisesTheTombstone) {
  const auto gone = fold(stored(event_of(7)), deletion_of(8)).state;
  auto late = event_of(9);
  late.state.uid = "u2";
  auto deletion = deletion_of(10);
  deletion.state.uid = "u2";
  const auto effects = fold(gone, deletion);
  EXPECT_EQ(effects.outcome, Outcome::stored);
  EXPECT_EQ(effects.state.presence, Presence::gone);
  EXPECT_EQ(fold(effects.state, late).outcome, Outcome::stale);
  EXPECT_EQ(fold(gone, late).outcome, Outcome::stored);
}

TEST(Fold, AnObjectThatComesBackIsRecreated) {
  const auto gone = fold(stored(event_of(7)), deletion_of(8)).state;
  const auto effects = fold(gone, event_of(9));
  EXPECT_EQ(effects.state.presence, Presence::live);
  EXPECT_EQ(effects.timeline->step, TimelineStep::recreated);
}

TEST(Fold, AResourceOfAnApplicationHasNoTimeline) {
  auto event = event_of(7);
  event.state.key.kind = "ConfigMap";
  EXPECT_FALSE(fold(std::nullopt, event).timeline);
}

TEST(Fold, FoldingTwiceGivesTheSame) {
  const auto current = stored(event_of(7));
  const auto once = fold(current, event_of(8, "v2"));
  const auto twice = fold(current, event_of(8, "v2"));
  EXPECT_EQ(once.state, twice.state);
  EXPECT_EQ(once.body, twice.body);
  EXPECT_EQ(once.timeline, twice.timeline);
}

TEST(MergeReleases, KeepsWhatTheNewerDoesNotKnow) {
  const Release stored{.history_id = 4,
                       .revision = "aaa",
                       .author = "Dana",
                       .phase = Phase::succeeded,
                       .was_degraded = true};
  const auto merged =
      merge(stored,
            {.history_id = 4, .revision = "aaa", .health = HealthStatus::healthy, .images = "[]"});
  EXPECT_EQ(merged.author, "Dana");
  EXPECT_EQ(merged.phase, Phase::succeeded);
  EXPECT_EQ(merged.health, HealthStatus::healthy);
  EXPECT_TRUE(merged.was_degraded);
}

// An Application was deleted and created again, so that its ids count from 0 again.
TEST(MergeReleases, AReleaseThatBeganAtAnotherTimeIsAnotherOne) {
  const Release stored{.history_id = 0,
                       .revision = "aaa",
                       .author = "Dana",
                       .started_at = 1'000,
                       .finished_at = 2'000,
                       .initiator = "dana",
                       .was_degraded = true};
  const Release newer{.history_id = 0, .revision = "bbb", .started_at = 9'000, .images = "[]"};
  EXPECT_EQ(merge(stored, newer), newer);
}

}  // namespace
}  // namespace gitops::control_plane_server
