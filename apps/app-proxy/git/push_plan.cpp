#include "app-proxy/git/push_plan.hpp"

#include <utility>

#include "app-proxy/git/failure_codes.hpp"
#include "common/net/socket_channel.hpp"

namespace gitops::app_proxy {

BasePlan plan_base(const ListedBranch& listed) {
  if (!listed.tip.empty()) return {.commit = listed.tip, .branch = listed.name};
  if (!listed.repository_has_branches) return {};
  if (listed.origin.empty()) return {.missing = listed.name};
  if (listed.origin_tip.empty()) return {.missing = listed.origin};
  return {.commit = listed.origin_tip, .branch = listed.origin};
}

namespace {

// Checks whether the branch is unchanged. A branch that does not exist is unchanged while it would
// begin at the same commit.
bool is_at_pushed_base(const BranchFacts& facts) {
  return facts.tip == facts.pushed_base || (facts.tip.empty() && facts.base == facts.pushed_base);
}

}  // namespace

bool needs_history(const BranchFacts& facts) {
  return facts.has_pushed_head && !facts.pushed_head.empty() && !facts.tip.empty() &&
         facts.tip != facts.pushed_head && !is_at_pushed_base(facts);
}

BranchState state_of(const BranchFacts& facts) {
  if (facts.pushed_head.empty()) return BranchState::moved;
  if (facts.tip == facts.pushed_head) return BranchState::has_ours;
  // A recreated clone lacks the commits of a push that did not arrive.
  if (is_at_pushed_base(facts)) {
    return facts.has_pushed_head ? BranchState::same : BranchState::moved;
  }
  return facts.tip_contains_pushed ? BranchState::has_ours : BranchState::moved;
}

PushPlan::Next PushPlan::after_attempt(Report report) {
  ++attempts_;
  refused_connections_ = 0;
  // The branch was read, so the outcome of an earlier push is known.
  if (report.step != PushStep::push_again) outcome_unknown_ = false;
  if (report.commits == 0) return {.end = PushEnd{.outcome = PushOutcome::pushed}};
  not_now_ = report.answer.kind == PushAnswer::Kind::not_now ? not_now_ + 1 : 0;
  if (report.answer.kind == PushAnswer::Kind::lost) outcome_unknown_ = true;
  if (report.step == PushStep::build || report.step == PushStep::push_again) {
    last_answer_ = report.answer;
  } else if (report.step == PushStep::refused && last_answer_) {
    // A refusal that the branch confirms keeps its reason.
    report.answer = *last_answer_;
  }
  return next({.answer = std::move(report.answer),
               .step = report.step,
               .commits = report.commits,
               .rounds = attempts_,
               .not_now = not_now_});
}

PushPlan::Next PushPlan::after_failure(Error error) {
  ++attempts_;
  if (is_clone_failure(error) && ++clone_failures_ > kMaxCloneFailures) {
    return {.end = PushEnd{.error = final_error({.error = std::move(error)}, outcome_unknown_)}};
  }
  const bool is_refused = error.subcode == net::kConnectionRefused && !outcome_unknown_;
  refused_connections_ = is_refused ? refused_connections_ + 1 : 0;
  return next({.answer = {.kind = PushAnswer::Kind::not_sent, .error = std::move(error)},
               .rounds = attempts_,
               .refused_connections = refused_connections_});
}

PushPlan::Next PushPlan::next(const Attempt& attempt) {
  using Kind = PushAnswer::Kind;
  reported_ = attempt.answer;
  switch (next_of(attempt)) {
    case NextStep::done:
      return {.end = PushEnd{.outcome = PushOutcome::pushed}};
    case NextStep::split:
      return {.end = PushEnd{.outcome = PushOutcome::split}};
    case NextStep::fail:
      return {.end = failed(attempt)};
    case NextStep::again:
      break;
  }
  const Kind kind = attempt.answer.kind;
  // Smaller batches are ready sooner when others push all the time.
  if (attempts_ >= kMaxAttemptsOfWholeBatch && requests_ > 1 && !outcome_unknown_ &&
      kind == Kind::refused) {
    return {.end = PushEnd{.outcome = PushOutcome::split}};
  }
  Next again{.retry_after = attempt.answer.error.retry_after};
  // Reading the branch needs no pause; a race needs a short one.
  if (kind == Kind::lost && attempts_ == 1) again.pause = Pause::none;
  if (refused_connections_ > 0) again.pause = Pause::refused;
  return again;
}

PushEnd PushPlan::failed(const Attempt& attempt) const {
  Error error = final_error(attempt.answer, outcome_unknown_);
  const bool is_race =
      attempt.answer.kind == PushAnswer::Kind::refused && attempt.step == PushStep::build;
  if (attempts_ >= kMaxRounds && is_race && !outcome_unknown_) {
    error.code = ErrorCode::conflict;
    error.message = "others changed the branch again and again: " + error.message;
  }
  return {.outcome = PushOutcome::failed, .error = std::move(error)};
}

PushEnd PushPlan::end_at_deadline() const {
  Error error = final_error(reported_, outcome_unknown_);
  if (reported_.kind == PushAnswer::Kind::refused) error.code = ErrorCode::conflict;
  return {.outcome = PushOutcome::failed, .error = std::move(error)};
}

}  // namespace gitops::app_proxy
