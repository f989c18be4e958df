#include "faults/history_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "faults/history_events.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// An event about the object "u".
struct Event {
  std::uint64_t sequence = 1;
  std::string content = "a";  // empty: it is gone
  std::string rest = {};
  std::string object = "u";
  std::string sender = "a replica";

  [[nodiscard]] ReceivedEvent received() const {
    return {.object = object,
            .id = object + "/" + std::to_string(sequence) + "/" + content + rest,
            .sequence = sequence,
            .state = content.empty() ? std::nullopt
                                     : std::optional(ObjectState{
                                           .content = content, .rest = rest, .milestone = content}),
            .sender = sender};
  }
};

struct HistoryModelTest : testing::Test {
  HistoryModelTest() { set("a"); }
  void set(const std::string& content, const std::string& rest = {},
           HistoryModel::Order order = HistoryModel::Order::strict) {
    model.set("u", {.content = content, .rest = rest, .milestone = content}, order);
  }
  void receive(const Event& event) { model.receive(event.received()); }

  HistoryModel model;
};

TEST_F(HistoryModelTest, SeesWhatWasNeverReportedAndWhatIsOutdated) {
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("never reported")));
  receive({});
  EXPECT_THAT(model.lost(), IsEmpty());
  set("b");
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("is b")));
}

TEST_F(HistoryModelTest, SeesADroppedEvent) {
  receive({});
  set("b");
  set("c");
  // That of b is dropped, which c makes up for; then that of c.
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("is c , was reported as a")));
  receive({.sequence = 3, .content = "c"});
  EXPECT_THAT(model.lost(), IsEmpty());
}

// The control plane does not take an event that it refuses.
TEST_F(HistoryModelTest, SeesARefusalThatWasTakenForAnAcknowledgement) {
  receive({});
  set("b");  // its event is answered 400, and never comes again
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("was reported as a")));
  model.remove("u");  // the event of the deletion is answered 400, too
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("was not reported gone")));
}

TEST_F(HistoryModelTest, SeesADeletionThatWasNotReported) {
  receive({});
  model.remove("u");
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("was not reported gone")));
  receive({.sequence = 2, .content = ""});
  EXPECT_THAT(model.lost(), IsEmpty());
  EXPECT_THAT(model.wrong(), IsEmpty());
}

TEST_F(HistoryModelTest, ADeletionOfWhatWasNeverReportedNeedsNoEvent) {
  model.remove("u");
  EXPECT_THAT(model.lost(), IsEmpty());
}

TEST_F(HistoryModelTest, CountsEventsThatCameTwice) {
  receive({});
  receive({.sequence = 2});
  EXPECT_EQ(model.duplicates(), 0U);
  receive({});
  EXPECT_EQ(model.duplicates(), 1U);
  EXPECT_EQ(model.events(), 3U);
  EXPECT_THAT(model.wrong(), IsEmpty());
}

// As docs/reference/events.md asks of a receiver.
TEST_F(HistoryModelTest, IgnoresAnEventWhoseSequenceIsNotAboveTheLastOne) {
  set("b");
  receive({.sequence = 5, .content = "b"});
  receive({.sequence = 4, .content = "a"});
  EXPECT_THAT(model.lost(), IsEmpty());
  EXPECT_THAT(model.wrong(), IsEmpty()) << "another replica may be behind";
}

TEST_F(HistoryModelTest, SeesASwapOfTwoSequences) {
  set("b");
  receive({.sequence = 6, .content = "a"});
  receive({.sequence = 5, .content = "b"});
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("was reported as a")));
}

// Of a replica that goes on after another one took its shard.
TEST_F(HistoryModelTest, SeesAStaleStateThatIsAboveTheLastOneAlsoWhenItIsHealed) {
  set("b");
  receive({.sequence = 5, .content = "b"});
  receive({.sequence = 6, .content = "a"});
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("goes back")));
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("was reported as a")));
  receive({.sequence = 7, .content = "b"});
  EXPECT_THAT(model.lost(), IsEmpty());
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("goes back")));
}

TEST_F(HistoryModelTest, AReturnToAnEarlierStateDoesNotGoBack) {
  set("b");
  set("a");
  receive({.sequence = 5, .content = "b"});
  receive({.sequence = 6, .content = "a"});
  EXPECT_THAT(model.wrong(), IsEmpty());
  EXPECT_THAT(model.lost(), IsEmpty());
}

TEST_F(HistoryModelTest, SeesAFalseDeletionAlsoWhenItIsHealed) {
  receive({.sequence = 5});
  receive({.sequence = 6, .content = ""});
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("exists, was reported gone")));
  receive({.sequence = 7});
  EXPECT_THAT(model.lost(), IsEmpty());
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("never was deleted")));
  EXPECT_THAT(model.trails(model.wrong().front()), HasSubstr("the truth of u: "));
}

TEST_F(HistoryModelTest, TheTrailOfAResourceHasThatOfItsApplication) {
  const ObjectState state{.content = "1", .rest = ""};
  for (const auto* object : {"uid-1 Application argocd a", "uid-2 Application argocd b"}) {
    model.set(object, state);
    model.receive(
        {.object = object, .id = std::string(object) + "/1", .sequence = 1, .state = state});
  }
  const auto trails = model.trails("never was deleted: uid-1 ConfigMap team c-0 uid-1/2 (gone)");
  EXPECT_THAT(trails, HasSubstr("the truth of uid-1 Application argocd a: 1"));
  EXPECT_THAT(trails, Not(HasSubstr("uid-2")));
}

TEST_F(HistoryModelTest, ALateDeletionIsWrongUnlessStatesAreReadFromTwoSources) {
  model.remove("u");
  set("b");
  receive({.sequence = 5, .content = "b"});
  receive({.sequence = 6, .content = ""});
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("goes back")));
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("exists, was reported gone")));
  set("c", {}, HistoryModel::Order::mixed);
  receive({.sequence = 7, .content = "c"});
  receive({.sequence = 8, .content = ""});
  EXPECT_EQ(model.wrong().size(), 1U);
}

// The holder of the shard had read the state; the replica that held it before saw the deletion first.
TEST_F(HistoryModelTest, AStateMayFollowADeletionThatAnotherReplicaToldUntilItsOwn) {
  receive({.sequence = 3});
  set("b");
  receive({.sequence = 4, .content = "b"});
  model.remove("u");
  receive({.sequence = 5, .content = "", .sender = "another"});
  EXPECT_THAT(model.lost(), IsEmpty());
  receive({.sequence = 9, .content = "b"});
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("was not reported gone")));
  receive({.sequence = 10, .content = ""});
  EXPECT_THAT(model.lost(), IsEmpty());
  EXPECT_THAT(model.wrong(), IsEmpty());
  // After its own there is none, and none from before the last that was told.
  receive({.sequence = 11, .content = "b"});
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("goes back")));
  receive({.sequence = 12, .content = "", .sender = "another"});
  receive({.sequence = 13, .content = "a"});
  EXPECT_EQ(model.wrong().size(), 2U);
  receive({.sequence = 14, .content = "", .sender = "another"});
  receive({.sequence = 15, .content = ""});
  receive({.sequence = 16, .content = "b"});
  EXPECT_EQ(model.wrong().size(), 3U);
}

TEST_F(HistoryModelTest, SeesAStateThatNeverWas) {
  receive({.content = "z"});
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("never was so")));
}

// Its errors, its manager, and whatever else has no part in the order.
TEST_F(HistoryModelTest, SeesAnotherRest) {
  set("a", "[error]");
  receive({.rest = "[]"});
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("is a [error], was reported as a []")));
  EXPECT_THAT(model.wrong(), IsEmpty());
}

TEST_F(HistoryModelTest, SeesAnEventOfAnUnknownObject) {
  receive({.object = "other"});
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("unknown object other")));
}

TEST_F(HistoryModelTest, SeesOneSequenceForTwoContents) {
  set("b");
  receive({.sequence = 5, .content = "a"});
  receive({.sequence = 5, .content = "b"});
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("one sequence for a")));
}

TEST_F(HistoryModelTest, SeesOneIdForTwoContents) {
  set("b");
  auto first = Event{.sequence = 5}.received();
  auto second = Event{.sequence = 6, .content = "b"}.received();
  second.id = first.id;
  model.receive(first);
  model.receive(second);
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("one id for a")));
}

TEST_F(HistoryModelTest, SeesAnEventWithoutASequence) {
  receive({.sequence = 0});
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("without a sequence")));
}

TEST_F(HistoryModelTest, WhatNobodyCanTellIsNeitherMissingNorToBeDeleted) {
  receive({});
  set("b");
  model.hide("u");
  EXPECT_THAT(model.lost(), IsEmpty());
  receive({.sequence = 2, .content = ""});
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("never was deleted")));
  set("b");
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("was reported gone")));
}

TEST_F(HistoryModelTest, OnlyAnEventThatWasTooLargeMayLackItsContent) {
  auto reduced = Event{}.received();
  reduced.state->content.clear();
  model.receive(reduced);
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("without a content")));
  reduced.id = "large";
  reduced.sequence = 2;
  model.note_too_large("large");
  model.receive(reduced);
  EXPECT_EQ(model.wrong().size(), 1U);
  EXPECT_THAT(model.lost(), IsEmpty());
}

TEST_F(HistoryModelTest, SeesASkippedMilestone) {
  receive({});
  model.begin_calm();
  set("b");
  set("c");
  receive({.sequence = 2, .content = "b"});
  EXPECT_THAT(model.skipped(), ElementsAre(HasSubstr("was c")));
  receive({.sequence = 3, .content = "c"});
  EXPECT_THAT(model.skipped(), IsEmpty());
  set("d");
  set("e");
  receive({.sequence = 4, .content = "e"});
  EXPECT_THAT(model.lost(), IsEmpty());
  EXPECT_THAT(model.skipped(), ElementsAre(HasSubstr("was d")));
}

TEST_F(HistoryModelTest, KnowsTheSameTruthWithoutEvents) {
  receive({.content = "z"});
  const auto copy = model.without_events();
  EXPECT_EQ(copy.events(), 0U);
  EXPECT_THAT(copy.wrong(), IsEmpty());
  EXPECT_THAT(copy.lost(), ElementsAre(HasSubstr("never reported")));
}

// -- what a receiver reads --

FakePlatform::Report report_of(json object, json source) {
  FakePlatform::Report report;
  report.event_id = "an id";
  report.sequence = 7;
  report.object = std::move(object);
  report.data = {{"source", std::move(source)}};
  return report;
}

json application(const std::string& uid) {
  return {{"apiVersion", "argoproj.io/v1alpha1"},
          {"kind", "Application"},
          {"metadata", {{"name", "web"}, {"namespace", "argocd"}, {"uid", uid}}},
          {"status", {{"content", "c"}, {"sync", {{"revision", "r"}}}}}};
}

// Also below another application, which `appUID` then names.
TEST(HistoryEvents, AnApplicationIsIdentifiedByItsOwnUid) {
  auto report = report_of(application("u"), {{"actualManifest", application("u").dump()},
                                             {"appName", "apps"},
                                             {"appNamespace", "argocd"},
                                             {"appUID", "above"},
                                             {"syncStatus", "Synced"}});
  report.data["errors"] = {{{"type", "sync"}, {"level", "error"}, {"message", "m"}}};
  const auto event = read_application_event(report);
  EXPECT_EQ(event.object, identity_of("u", "Application", "argocd", "web"));
  EXPECT_EQ(event.sequence, 7U);
  ASSERT_TRUE(event.state);
  EXPECT_EQ(event.state->content, "c");
  EXPECT_EQ(event.state->rest, "r Synced   of argocd/apps above [sync error: m]");
}

TEST(HistoryEvents, AResourceIsIdentifiedByItsApplicationAndItsName) {
  const json object{{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", {{"name", "c"}, {"namespace", "shop"}}},
                    {"data", {{"content", "x"}}}};
  const json source{{"actualManifest", object.dump()}, {"appUID", "u"}};
  const auto event = read_application_event(report_of(object, source));
  EXPECT_EQ(event.object, identity_of("u", "ConfigMap", "shop", "c"));
  ASSERT_TRUE(event.state);
  EXPECT_EQ(event.state->content, "x");
}

TEST(HistoryEvents, TwoEmptyManifestsAreADeletion) {
  EXPECT_FALSE(read_application_event(
                   report_of(application("u"), {{"actualManifest", ""}, {"desiredManifest", ""}}))
                   .state);
  EXPECT_TRUE(read_application_event(
                  report_of(application("u"), {{"actualManifest", ""}, {"desiredManifest", "{}"}}))
                  .state);
}

TEST(HistoryEvents, OfModeResourceTheMarkIsTheDeletion) {
  const json object{{"kind", "Rollout"},
                    {"metadata", {{"name", "web"}, {"namespace", "shop"}, {"uid", "u"}}},
                    {"spec", {{"content", "x"}}},
                    {"status", {{"phase", "p"}}}};
  auto report = report_of(object, {});
  auto event = read_resource_event(report);
  EXPECT_EQ(event.object, "u");
  ASSERT_TRUE(event.state);
  EXPECT_EQ(event.state->content, "x");
  EXPECT_EQ(event.state->rest, "own Rollout shop/web p");
  report.data["deleted"] = true;
  EXPECT_FALSE(read_resource_event(report).state);
}

}  // namespace
}  // namespace gitops::test
