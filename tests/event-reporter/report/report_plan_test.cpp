// One report from its plan to its end, without a ledger's file and without a control plane. Together
// the tests show that no event is lost: at each moment the entry, or the failure of the report, says
// that it is due.
#include "event-reporter/report/report_plan.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ResourceId kDeployment{"apps", "v1", "Deployment", "shop", "web"};
const ResourceId kService{"", "v1", "Service", "shop", "web"};
const Grant kOwner{.owner = true};
const Grant kOther{};
const Grant kRetry{.owner = true, .retry_refused = true};
constexpr Sequence kFresh = 1000;

Digest digest(std::uint8_t value) {
  return Digest{value};
}

Result<Delivered> acknowledged() {
  return Delivered{};
}
Result<Delivered> refused() {
  return Delivered{
      .kind = Delivered::Kind::refused,
      .error = {.code = ErrorCode::invalid_argument, .message = "no", .http_status = 400}};
}
Result<Delivered> put_off() {
  return Delivered{.kind = Delivered::Kind::put_off,
                   .error = {.code = ErrorCode::invalid_argument, .message = "later"}};
}
Result<Delivered> outage() {
  return fail(ErrorCode::unavailable, "away");
}

// An entry whose events were all acknowledged.
LedgerEntry reported() {
  LedgerEntry entry{.uid = "u1", .change = digest(7), .tree = digest(8)};
  entry.announce(digest(1), 10);
  entry.acknowledge(digest(1));
  entry.announce(kDeployment, digest(2), 10);
  entry.acknowledge(kDeployment, digest(2));
  return entry;
}

// An application with a Deployment and a Service.
struct Application {
  std::vector<ApplicationEvents::Resource> resources = {{kDeployment, digest(2)},
                                                        {kService, digest(3)}};
  ApplicationFacts facts{.uid = "u1", .content = digest(1), .change = digest(5), .tree = digest(6)};
  ReportScope scope = {};

  [[nodiscard]] ReportPlan plan(LedgerEntry entry, const Grant& grant = kOwner) const {
    auto known = facts;
    known.resources = resources;
    return plan_application(std::move(entry), known, scope, grant);
  }
};

std::vector<std::string> names(const ReportPlan& plan) {
  std::vector<std::string> out;
  for (const auto& event : plan.events) {
    out.push_back((event.part ? event.part->kind : "own") + (event.is_gone() ? " gone" : "") +
                  (event.is_new ? "" : " again"));
  }
  return out;
}

// Performs the plan, with this outcome for each event.
ReportEnd perform(ReportPlan& plan, const std::vector<Result<Delivered>>& outcomes) {
  if (plan.announces()) plan.announce(kFresh);
  for (std::size_t i = 0; i < plan.events.size(); ++i) {
    if (!plan.record(plan.events[i], outcomes.at(i), {})) break;
  }
  return plan.finish();
}

// The events that a report of the same state has after a restart with this entry.
std::vector<std::string> due_again(const Application& application, const LedgerEntry& entry) {
  return names(application.plan(entry));
}

// -- announcing --

TEST(ReportPlan, AnUnknownApplicationIsReportedWithItsResources) {
  EXPECT_THAT(names(Application().plan({.uid = "u1"})),
              ElementsAre("own", "Deployment", "Service"));
}

TEST(ReportPlan, OnlyWhatDiffersFromTheLedgerIsPosted) {
  EXPECT_THAT(names(Application().plan(reported())), ElementsAre("Service"));
}

TEST(ReportPlan, EachNewEventIsInTheEntryBeforeItIsPosted) {
  auto plan = Application().plan({.uid = "u1"});
  ASSERT_TRUE(plan.is_written_ahead());
  plan.announce(kFresh);
  EXPECT_EQ(plan.entry.sequence, kFresh);
  for (const auto& event : plan.events) {
    EXPECT_EQ(plan.sequence_of(event), kFresh);
  }
  EXPECT_FALSE(plan.entry.application->acknowledged);
  EXPECT_FALSE(plan.entry.resources.at(kService.identity()).last.acknowledged);
}

TEST(ReportPlan, AKillAfterTheAnnouncementLosesNoEvent) {
  const Application application;
  auto plan = application.plan({.uid = "u1"});
  plan.announce(kFresh);
  EXPECT_FALSE(plan.entry.change) << "a restart reports the application again";
  EXPECT_THAT(due_again(application, plan.entry), ElementsAre("own", "Deployment", "Service"));
}

TEST(ReportPlan, AnEventThatIsSentAgainKeepsItsSequence) {
  const Application application;
  auto first = application.plan({.uid = "u1"});
  first.announce(kFresh);
  auto second = application.plan(first.entry);
  second.announce(kFresh + 1);
  for (const auto& event : second.events) EXPECT_EQ(second.sequence_of(event), kFresh);
}

TEST(ReportPlan, NothingIsWrittenAheadWhenNothingIsNew) {
  Application application;
  application.resources.pop_back();
  application.scope.heartbeat = true;
  const auto plan = application.plan(reported());
  EXPECT_THAT(names(plan), ElementsAre("own again"));
  EXPECT_FALSE(plan.is_written_ahead());
}

// -- outcomes --

TEST(ReportPlan, AReportIsCompleteWhenEveryEventIsAcknowledged) {
  auto plan = Application().plan({.uid = "u1"});
  const auto end = perform(plan, {acknowledged(), acknowledged(), acknowledged()});
  EXPECT_FALSE(end.error);
  EXPECT_FALSE(end.erases);
  EXPECT_EQ(plan.entry.change, digest(5));
  EXPECT_EQ(plan.entry.tree, digest(6));
  EXPECT_THAT(due_again({}, plan.entry), IsEmpty());
}

TEST(ReportPlan, AfterAFailureOfTheOwnEventNoOtherIsPosted) {
  const Application application;
  auto plan = application.plan({.uid = "u1"});
  const auto end = perform(plan, {outage()});
  EXPECT_TRUE(end.stopped);
  EXPECT_EQ(end.error->message, "away");
  EXPECT_THAT(due_again(application, plan.entry), ElementsAre("own", "Deployment", "Service"));
}

TEST(ReportPlan, AFailureOfAResourceKeepsItDueAndNoOther) {
  const Application application;
  auto plan = application.plan({.uid = "u1"});
  const auto end = perform(plan, {acknowledged(), outage(), acknowledged()});
  EXPECT_FALSE(end.stopped);
  EXPECT_EQ(end.error->message, "away");
  EXPECT_FALSE(plan.entry.change);
  EXPECT_THAT(due_again(application, plan.entry), ElementsAre("Deployment"));
}

TEST(ReportPlan, AnEventThatIsPutOffStaysDueAndHoldsUpNoOther) {
  const Application application;
  auto plan = application.plan({.uid = "u1"});
  const auto end = perform(plan, {put_off(), acknowledged(), acknowledged()});
  EXPECT_FALSE(end.stopped);
  EXPECT_EQ(end.error->message, "later");
  EXPECT_FALSE(plan.entry.change);
  EXPECT_THAT(due_again(application, plan.entry), ElementsAre("own"));
}

TEST(ReportPlan, AFailureCountsMoreThanAnEventThatIsPutOff) {
  auto plan = Application().plan({.uid = "u1"});
  EXPECT_EQ(perform(plan, {put_off(), outage(), put_off()}).error->message, "away");
}

TEST(ReportPlan, AnEventThatIsRefusedForGoodIsMarkedAndNotDue) {
  const Application application;
  auto plan = application.plan({.uid = "u1"});
  const auto end = perform(plan, {acknowledged(), refused(), acknowledged()});
  EXPECT_FALSE(end.error);
  EXPECT_EQ(plan.entry.change, digest(5));
  ASSERT_EQ(plan.entry.refused.size(), 1U);
  EXPECT_EQ(plan.entry.refused[0].part, kDeployment.identity());
  EXPECT_EQ(plan.entry.refused[0].status, 400);
  EXPECT_THAT(due_again(application, plan.entry), IsEmpty());
}

TEST(ReportPlan, ARetryPostsWhatWasRefusedForGood) {
  const Application application;
  auto first = application.plan({.uid = "u1"});
  perform(first, {refused(), acknowledged(), refused()});
  const auto plan = application.plan(first.entry, kRetry);
  EXPECT_THAT(names(plan), ElementsAre("own", "Service"));
  for (const auto& event : plan.events) EXPECT_TRUE(plan.was_refused(event));
}

TEST(ReportPlan, AHeartbeatThatWasRefusedIsNotSent) {
  Application application;
  application.resources.clear();
  auto first = application.plan({.uid = "u1"});
  perform(first, {refused()});
  application.scope.heartbeat = true;
  EXPECT_THAT(names(application.plan(first.entry)), IsEmpty());
}

TEST(ReportPlan, WhatWasRecordedIsUnsavedUntilItIsSaved) {
  auto plan = Application().plan({.uid = "u1"});
  plan.announce(kFresh);
  plan.saved();
  plan.record(plan.events[0], put_off(), {});
  EXPECT_FALSE(plan.is_unsaved());
  plan.record(plan.events[1], acknowledged(), {});
  EXPECT_TRUE(plan.is_unsaved());
}

// -- what is not known --

TEST(ReportPlan, AResourceThatIsGoneIsReportedAndThenForgotten) {
  Application application;
  application.resources = {{kService, digest(3)}};
  auto plan = application.plan(reported());
  EXPECT_THAT(names(plan), ElementsAre("Service", "Deployment gone"));
  EXPECT_FALSE(perform(plan, {acknowledged(), acknowledged()}).error);
  EXPECT_FALSE(plan.entry.resources.contains(kDeployment.identity()));
}

TEST(ReportPlan, AResourceWhoseDeletionIsPutOffStaysInTheEntry) {
  Application application;
  application.resources.clear();
  auto plan = application.plan(reported());
  EXPECT_TRUE(perform(plan, {put_off()}).error);
  EXPECT_TRUE(plan.entry.resources.contains(kDeployment.identity()));
  EXPECT_THAT(due_again(application, plan.entry), ElementsAre("Deployment gone"));
}

TEST(ReportPlan, NothingIsGoneWhenNotEveryResourceIsListed) {
  Application application;
  application.resources.clear();
  application.facts.lists_every_resource = false;
  EXPECT_THAT(names(application.plan(reported())), IsEmpty());
}

// The inventory has it from the newer state, or from what another replica reported.
TEST(ReportPlan, AResourceThatANewerStateMayHaveIsNotGone) {
  Application application;
  application.resources.clear();
  application.facts.is_overtaken = true;
  auto entry = reported();
  entry.note(kService);
  auto plan = application.plan(entry);
  EXPECT_THAT(names(plan), ElementsAre("Deployment gone")) << "that one was reported";
  EXPECT_FALSE(perform(plan, {acknowledged()}).error);
  EXPECT_FALSE(plan.entry.change) << "a restart compares the application once more";
  application.facts.is_overtaken = false;
  EXPECT_THAT(due_again(application, plan.entry), ElementsAre("Service gone"));
}

TEST(ReportPlan, AResourceWhoseStateIsNotKnownIsNotReported) {
  Application application;
  application.resources[1].known = false;
  EXPECT_THAT(names(application.plan(reported())), IsEmpty());
}

TEST(ReportPlan, WithoutTheManagedResourcesTheApplicationAloneIsReported) {
  Application application;
  application.facts.resources_known = false;
  application.facts.missing.managed = true;
  application.scope.why = {.code = ErrorCode::unavailable, .message = "Argo CD is away"};
  auto plan = application.plan({.uid = "u1"});
  EXPECT_THAT(names(plan), ElementsAre("own"));
  const auto end = perform(plan, {acknowledged()});
  EXPECT_EQ(end.error->message, "Argo CD is away") << "the application stays due";
  EXPECT_FALSE(plan.entry.change);
  EXPECT_EQ(plan.entry.tree, std::nullopt);
}

TEST(ReportPlan, AFailedComparisonLeavesARestartSomethingToReport) {
  Application application;
  application.facts.missing.comparison = true;
  auto plan = application.plan({.uid = "u1"});
  EXPECT_FALSE(perform(plan, {acknowledged(), acknowledged(), acknowledged()}).error);
  EXPECT_FALSE(plan.entry.change);
  EXPECT_EQ(plan.entry.tree, digest(6));
}

TEST(ReportPlan, WithoutTheMetadataOfCommitsTheNextSweepFindsTheTreeChanged) {
  Application application;
  application.facts.lacks_commits = true;
  auto plan = application.plan({.uid = "u1"});
  EXPECT_FALSE(perform(plan, {acknowledged(), acknowledged(), acknowledged()}).error);
  EXPECT_EQ(plan.entry.change, digest(5));
  EXPECT_FALSE(plan.entry.tree);
}

TEST(ReportPlan, ASupersededStateTellsTheApplicationAloneAndCompletesNothing) {
  Application application;
  application.scope.superseded = true;
  application.facts.missing.tree = true;
  auto plan = application.plan({.uid = "u1"});
  EXPECT_THAT(names(plan), ElementsAre("own"));
  EXPECT_FALSE(perform(plan, {acknowledged()}).error) << "the newest state must not wait for it";
  EXPECT_FALSE(plan.entry.change);
}

TEST(ReportPlan, APartOfAnApplicationCompletesNothingUnlessItIsTheLast) {
  Application application;
  application.scope.is_last = false;
  auto plan = application.plan({.uid = "u1"});
  EXPECT_FALSE(perform(plan, {acknowledged(), acknowledged(), acknowledged()}).error);
  EXPECT_FALSE(plan.entry.change);
}

TEST(ReportPlan, AReportWaitsForMissingReadsWithinItsLimits) {
  const WaitLimits limits{.failures = 5, .silence = std::chrono::seconds(10)};
  const MissingParts tree{.tree = true};
  EXPECT_TRUE(waits_for_reads(tree, false, 4, std::chrono::seconds(9), limits));
  EXPECT_FALSE(waits_for_reads(tree, false, 5, std::chrono::seconds(9), limits));
  EXPECT_FALSE(waits_for_reads(tree, false, 4, std::chrono::seconds(10), limits));
  EXPECT_FALSE(waits_for_reads(tree, true, 0, {}, limits)) << "a deletion is told at once";
  EXPECT_FALSE(waits_for_reads({.comparison = true}, false, 0, {}, limits));
}

// -- deletions --

TEST(ReportPlan, ADeletionTellsTheObjectFirstAndThenItsParts) {
  const auto plan = plan_deletion(reported(), kOwner);
  EXPECT_THAT(names(plan), ElementsAre("own gone", "Deployment gone"));
  EXPECT_FALSE(plan.entry.change);
}

TEST(ReportPlan, AnEntryIsErasedWhenItsDeletionIsComplete) {
  auto plan = plan_deletion(reported(), kOwner);
  EXPECT_TRUE(perform(plan, {acknowledged(), acknowledged()}).erases);
}

TEST(ReportPlan, AnEntryOfAnIncompleteDeletionStays) {
  for (const auto& outcome : {outage(), put_off()}) {
    auto plan = plan_deletion(reported(), kOwner);
    const auto end = perform(plan, {acknowledged(), outcome});
    EXPECT_FALSE(end.erases);
    EXPECT_TRUE(end.error);
    EXPECT_THAT(names(plan_deletion(plan.entry, kOwner)), ElementsAre("Deployment gone"));
  }
}

TEST(ReportPlan, AnEntryWithARefusedDeletionStaysForARetry) {
  auto plan = plan_deletion(reported(), kOwner);
  const auto end = perform(plan, {acknowledged(), refused()});
  EXPECT_FALSE(end.erases);
  EXPECT_FALSE(end.error);
  const auto again = plan_deletion(plan.entry, kOwner);
  EXPECT_TRUE(again.waits);
  EXPECT_THAT(names(again), IsEmpty());
  EXPECT_THAT(names(plan_deletion(plan.entry, kRetry)), ElementsAre("Deployment gone"));
}

TEST(ReportPlan, TheOwnerTellsTheDeletionOfWhatThisProcessNeverReported) {
  LedgerEntry noted{.uid = "u1"};
  noted.note(kDeployment);
  EXPECT_TRUE(plan_deletion(noted, kOther).left_to_owner);
  EXPECT_FALSE(plan_deletion(noted, kOwner).left_to_owner);
  EXPECT_FALSE(plan_deletion(reported(), kOther).left_to_owner);
}

TEST(ReportPlan, PartsThatAnotherReplicaDoesNotKnowAreToldAsGone) {
  auto entry = reported();
  entry.acknowledge(kService, digest(3));
  auto plan = plan_lost_parts(entry, {kService}, kOther);
  EXPECT_THAT(names(plan), ElementsAre("Deployment gone"));
  const auto end = perform(plan, {acknowledged()});
  EXPECT_FALSE(end.error);
  EXPECT_FALSE(end.erases) << "the application is there";
  EXPECT_TRUE(plan.entry.resources.contains(kService.identity()));
}

// -- objects without parts --

TEST(ReportPlan, AnObjectIsCompleteWhenItsEventIsAcknowledged) {
  auto plan = plan_object({.uid = "u1"}, digest(1), false, kOwner);
  EXPECT_TRUE(plan.is_written_ahead());
  EXPECT_FALSE(perform(plan, {acknowledged()}).error);
  EXPECT_EQ(plan.entry.change, digest(1));
}

TEST(ReportPlan, AnObjectStaysDueAfterAFailure) {
  for (const auto& outcome : {outage(), put_off()}) {
    auto plan = plan_object({.uid = "u1"}, digest(1), false, kOwner);
    EXPECT_TRUE(perform(plan, {outcome}).error);
    EXPECT_FALSE(plan.entry.change);
    EXPECT_THAT(names(plan_object(plan.entry, digest(1), false, kOwner)), ElementsAre("own"));
  }
}

TEST(ReportPlan, AnObjectThatWasAcknowledgedBeforeIsNotPostedAgain) {
  auto plan = plan_object(reported(), digest(1), false, kOwner);
  EXPECT_THAT(names(plan), IsEmpty());
  EXPECT_FALSE(perform(plan, {}).error);
  EXPECT_EQ(plan.entry.change, digest(1));
}

TEST(ReportPlan, AHeartbeatOfAnObjectIsWrittenAheadWithItsSequence) {
  const auto plan = plan_object(reported(), digest(1), true, kOwner);
  EXPECT_THAT(names(plan), ElementsAre("own again"));
  EXPECT_TRUE(plan.is_written_ahead());
  EXPECT_FALSE(plan.entry.change);
  EXPECT_EQ(plan.sequence_of(plan.events[0]), 10U);
}

TEST(ReportPlan, AnObjectThatWasRefusedWaitsForARetry) {
  auto first = plan_object({.uid = "u1"}, digest(1), false, kOwner);
  EXPECT_FALSE(perform(first, {refused()}).error);
  EXPECT_TRUE(plan_object(first.entry, digest(1), false, kOwner).waits);
  EXPECT_THAT(names(plan_object(first.entry, digest(1), false, kRetry)), ElementsAre("own"));
  EXPECT_THAT(names(plan_object(first.entry, digest(2), false, kOwner)), ElementsAre("own"));
}

}  // namespace
}  // namespace gitops::reporter
