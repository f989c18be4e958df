// The decisions of the committer, without a server and without a clone.
#include "app-proxy/git/push_plan.hpp"

#include <gmock/gmock.h>

#include "app-proxy/git/failure_codes.hpp"
#include "common/net/socket_channel.hpp"

namespace gitops::app_proxy {
namespace {

using Kind = PushAnswer::Kind;
using Pause = PushPlan::Pause;
using testing::HasSubstr;

PushAnswer answer(Kind kind, ErrorCode code = ErrorCode::unavailable) {
  return {.kind = kind, .error = {.code = code, .message = "x"}};
}

PushPlan::Report report(Kind kind, PushStep step = PushStep::build, std::size_t commits = 1) {
  return {.step = step, .answer = answer(kind), .commits = commits};
}

Error error(std::string_view subcode = {}, ErrorCode code = ErrorCode::unavailable) {
  return {.code = code, .message = "x", .subcode = subcode};
}

// How a batch ended; nullopt while another attempt follows.
std::optional<PushOutcome> outcome(const PushPlan::Next& next) {
  return next.end ? std::optional(next.end->outcome) : std::nullopt;
}

// The base of new commits.

TEST(BasePlans, ABranchThatExistsIsItsOwnBase) {
  const auto plan = plan_base({.name = "main",
                               .tip = "a1",
                               .origin = "dev",
                               .origin_tip = "d1",
                               .repository_has_branches = true});
  EXPECT_EQ(plan.commit, "a1");
  EXPECT_EQ(plan.branch, "main");
  EXPECT_EQ(plan.missing, "");
}

TEST(BasePlans, ANewBranchBeginsAtItsOrigin) {
  const auto plan = plan_base(
      {.name = "new", .origin = "dev", .origin_tip = "d1", .repository_has_branches = true});
  EXPECT_EQ(plan.commit, "d1");
  EXPECT_EQ(plan.branch, "dev");
  EXPECT_EQ(plan.missing, "");
}

TEST(BasePlans, ANewBranchWithoutAnOriginIsAnError) {
  EXPECT_EQ(plan_base({.name = "new", .repository_has_branches = true}).missing, "new");
}

TEST(BasePlans, AnOriginThatDoesNotExistIsAnError) {
  const auto plan = plan_base({.name = "new", .origin = "dev", .repository_has_branches = true});
  EXPECT_EQ(plan.missing, "dev");
}

TEST(BasePlans, AnEmptyRepositoryGetsItsFirstCommitWithOrWithoutAnOrigin) {
  for (const char* origin : {"", "dev"}) {
    const auto plan = plan_base({.name = "main", .origin = origin});
    EXPECT_EQ(plan.commit, "") << origin;
    EXPECT_EQ(plan.missing, "") << origin;
  }
}

// The branch after a push.

// Commits up to "p2" on top of "b1" were pushed, and the clone has them.
BranchFacts facts(std::string tip) {
  return {.tip = tip,
          .base = std::move(tip),
          .pushed_head = "p2",
          .pushed_base = "b1",
          .has_pushed_head = true};
}

TEST(BranchStates, WithoutAnEarlierPushEveryBranchCountsAsMoved) {
  const BranchFacts first{.tip = "b1", .base = "b1"};
  EXPECT_FALSE(needs_history(first));
  EXPECT_EQ(state_of(first), BranchState::moved);
  EXPECT_EQ(state_of({}), BranchState::moved);
}

TEST(BranchStates, ATipThatIsTheLastPushedCommitHasThemAll) {
  EXPECT_FALSE(needs_history(facts("p2")));
  EXPECT_EQ(state_of(facts("p2")), BranchState::has_ours);
}

TEST(BranchStates, ATipThatIsTheOldBaseHasNotMoved) {
  EXPECT_FALSE(needs_history(facts("b1")));
  EXPECT_EQ(state_of(facts("b1")), BranchState::same);
}

TEST(BranchStates, TheHistoryTellsWhetherAnotherTipHasThePushedCommits) {
  auto other = facts("z9");
  EXPECT_TRUE(needs_history(other));
  EXPECT_EQ(state_of(other), BranchState::moved);
  other.tip_contains_pushed = true;
  EXPECT_EQ(state_of(other), BranchState::has_ours);
}

TEST(BranchStates, ANewCloneCannotPushTheOldCommitsAgain) {
  auto lost = facts("b1");
  lost.has_pushed_head = false;
  EXPECT_EQ(state_of(lost), BranchState::moved);
  lost = facts("z9");
  lost.has_pushed_head = false;
  EXPECT_FALSE(needs_history(lost)) << "commits that nobody has are in no history here";
  EXPECT_EQ(state_of(lost), BranchState::moved);
}

TEST(BranchStates, ABranchThatIsStillToBeMadeHasNotMovedWhileItsOriginHasNot) {
  auto absent = facts("");
  absent.base = "b1";
  EXPECT_EQ(state_of(absent), BranchState::same);
  absent.base = "d2";
  EXPECT_FALSE(needs_history(absent));
  EXPECT_EQ(state_of(absent), BranchState::moved);
}

TEST(BranchStates, AnEmptyRepositoryIsTheSameUntilItHasABranch) {
  auto empty = facts("");
  empty.pushed_base = "";
  EXPECT_EQ(state_of(empty), BranchState::same);
}

// The course of a batch.

TEST(PushPlans, AnAcceptedPushEndsTheBatch) {
  PushPlan plan(2);
  EXPECT_FALSE(plan.last_answer());
  EXPECT_EQ(outcome(plan.after_attempt(report(Kind::accepted, PushStep::build, 2))),
            PushOutcome::pushed);
}

TEST(PushPlans, ABatchWithoutACommitIsPushedWithoutAPush) {
  PushPlan plan(2);
  EXPECT_EQ(outcome(plan.after_attempt({.step = PushStep::build, .commits = 0})),
            PushOutcome::pushed);
  EXPECT_FALSE(plan.last_answer());
}

TEST(PushPlans, ALostAnswerIsLookedUpAtOnceAndLaterAfterAPause) {
  PushPlan plan;
  const auto first = plan.after_attempt(report(Kind::lost));
  EXPECT_FALSE(first.end);
  EXPECT_EQ(first.pause, Pause::none);
  const auto second = plan.after_attempt(report(Kind::lost, PushStep::push_again));
  EXPECT_FALSE(second.end);
  EXPECT_EQ(second.pause, Pause::growing);
  const auto third = plan.after_attempt(report(Kind::not_sent, PushStep::landed));
  EXPECT_EQ(outcome(third), PushOutcome::pushed);
}

TEST(PushPlans, ARefusalThatTheBranchConfirmsKeepsItsReason) {
  PushPlan plan;
  auto refused = report(Kind::refused);
  refused.answer.error = {.code = ErrorCode::forbidden, .message = "protected branch"};
  EXPECT_FALSE(plan.after_attempt(refused).end);
  const auto next = plan.after_attempt({.step = PushStep::refused, .commits = 1});
  ASSERT_EQ(outcome(next), PushOutcome::failed);
  EXPECT_EQ(next.end->error.code, ErrorCode::forbidden);
  EXPECT_EQ(next.end->error.message, "protected branch");
}

TEST(PushPlans, AConfirmedRefusalOfSeveralCommitsSplitsTheBatch) {
  PushPlan plan(2);
  EXPECT_FALSE(plan.after_attempt(report(Kind::refused, PushStep::build, 2)).end);
  EXPECT_EQ(outcome(plan.after_attempt({.step = PushStep::refused, .commits = 2})),
            PushOutcome::split);
}

TEST(PushPlans, ABatchThatLosesTwoRacesIsSplit) {
  PushPlan plan(2);
  EXPECT_FALSE(plan.after_attempt(report(Kind::refused, PushStep::build, 2)).end);
  EXPECT_EQ(outcome(plan.after_attempt(report(Kind::refused, PushStep::build, 2))),
            PushOutcome::split);
}

TEST(PushPlans, ASingleRequestThatAlwaysLosesEndsAsAConflict) {
  PushPlan plan;
  for (unsigned attempt = 1; attempt < kMaxRounds; ++attempt) {
    ASSERT_FALSE(plan.after_attempt(report(Kind::refused)).end) << attempt;
  }
  const auto next = plan.after_attempt(report(Kind::refused));
  ASSERT_EQ(outcome(next), PushOutcome::failed);
  EXPECT_EQ(next.end->error.code, ErrorCode::conflict);
  EXPECT_THAT(next.end->error.message, HasSubstr("again and again"));
}

TEST(PushPlans, ABatchIsNotSplitWhileThePushMayHaveArrived) {
  PushPlan plan(2);
  EXPECT_FALSE(plan.after_attempt(report(Kind::lost, PushStep::build, 2)).end);
  EXPECT_FALSE(plan.after_attempt(report(Kind::refused, PushStep::push_again, 2)).end);
}

TEST(PushPlans, AFailureAfterALostAnswerSaysThatTheOutcomeIsUnknown) {
  PushPlan plan;
  EXPECT_FALSE(plan.after_attempt(report(Kind::lost)).end);
  const auto next = plan.after_failure(error({}, ErrorCode::unauthenticated));
  ASSERT_EQ(outcome(next), PushOutcome::failed);
  EXPECT_EQ(next.end->error.code, ErrorCode::timeout);
  EXPECT_EQ(next.end->error.subcode, kOutcomeUnknown);
  EXPECT_THAT(next.end->error.message, HasSubstr("not known whether"));
}

TEST(PushPlans, ABranchThatWasSeenEndsTheDoubtAboutAnEarlierPush) {
  PushPlan plan;
  EXPECT_FALSE(plan.after_attempt(report(Kind::lost)).end);
  EXPECT_FALSE(plan.after_attempt(report(Kind::refused)).end) << "built again on another tip";
  const auto next = plan.after_failure(error({}, ErrorCode::unauthenticated));
  ASSERT_EQ(outcome(next), PushOutcome::failed);
  EXPECT_EQ(next.end->error.code, ErrorCode::unauthenticated);
}

TEST(PushPlans, AServerWithoutAListenerIsGivenUpAfterItsPauses) {
  PushPlan plan;
  for (unsigned attempt = 1; attempt < kMaxRefusedConnections; ++attempt) {
    const auto next = plan.after_failure(error(net::kConnectionRefused));
    EXPECT_FALSE(next.end) << attempt;
    EXPECT_EQ(next.pause, Pause::refused);
  }
  EXPECT_EQ(outcome(plan.after_failure(error(net::kConnectionRefused))), PushOutcome::failed);
}

TEST(PushPlans, AServerWithoutAListenerIsTriedOnWhileAPushMayHaveArrived) {
  PushPlan plan;
  EXPECT_FALSE(plan.after_attempt(report(Kind::lost)).end);
  for (unsigned attempt = 0; attempt < 2 * kMaxRefusedConnections; ++attempt) {
    const auto next = plan.after_failure(error(net::kConnectionRefused));
    EXPECT_FALSE(next.end) << attempt;
    EXPECT_EQ(next.pause, Pause::growing);
  }
}

TEST(PushPlans, AFailingCloneIsMadeAgainTwice) {
  for (const auto subcode : {kBrokenClone, kDiskFull}) {
    PushPlan plan;
    for (unsigned failure = 1; failure <= kMaxCloneFailures; ++failure) {
      EXPECT_FALSE(plan.after_failure(error(subcode)).end) << subcode;
    }
    const auto next = plan.after_failure(error(subcode));
    ASSERT_EQ(outcome(next), PushOutcome::failed) << subcode;
    EXPECT_EQ(next.end->error.subcode, subcode);
  }
}

TEST(PushPlans, ThePauseIsAtLeastWhatTheServerAskedFor) {
  PushPlan plan;
  auto busy = report(Kind::not_now);
  busy.answer.error.retry_after = std::chrono::seconds(7);
  EXPECT_EQ(plan.after_attempt(busy).retry_after, std::chrono::seconds(7));
}

TEST(PushPlans, RefusalsThatPassAreCountedInARow) {
  PushPlan plan;
  for (unsigned attempt = 1; attempt < kMaxNotNow; ++attempt) {
    ASSERT_FALSE(plan.after_attempt(report(Kind::not_now, PushStep::push_again)).end) << attempt;
  }
  EXPECT_FALSE(plan.after_attempt(report(Kind::lost, PushStep::push_again)).end);
  EXPECT_FALSE(plan.after_attempt(report(Kind::not_now, PushStep::push_again)).end)
      << "the count begins again";
}

TEST(PushPlans, TheDeadlineEndsARaceAsAConflictAndEverythingElseAsItIs) {
  PushPlan race;
  EXPECT_FALSE(race.after_attempt(report(Kind::refused)).end);
  EXPECT_EQ(race.end_at_deadline().outcome, PushOutcome::failed);
  EXPECT_EQ(race.end_at_deadline().error.code, ErrorCode::conflict);
  PushPlan away;
  EXPECT_FALSE(away.after_failure(error()).end);
  EXPECT_EQ(away.end_at_deadline().error.code, ErrorCode::unavailable);
  PushPlan lost;
  EXPECT_FALSE(lost.after_attempt(report(Kind::lost)).end);
  EXPECT_EQ(lost.end_at_deadline().error.code, ErrorCode::timeout);
}

}  // namespace
}  // namespace gitops::app_proxy
