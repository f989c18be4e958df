#include "app-proxy/git/push_rules.hpp"

namespace gitops::app_proxy {

RoundStep step_of(const std::optional<PushAnswer>& last, BranchState state) {
  if (!last) return RoundStep::build;
  switch (state) {
    case BranchState::has_ours:
      return RoundStep::landed;
    case BranchState::moved:
      return RoundStep::build;
    case BranchState::same:
      return last->kind == PushAnswer::Kind::refused ? RoundStep::refused : RoundStep::push_again;
  }
  return RoundStep::build;
}

NextStep next_of(const Attempt& attempt) {
  if (attempt.step == RoundStep::landed) return NextStep::done;
  if (attempt.step == RoundStep::refused) {
    return attempt.commits > 1 ? NextStep::split : NextStep::fail;
  }
  if (attempt.answer.kind == PushAnswer::Kind::accepted) return NextStep::done;
  if (attempt.rounds >= kMaxRounds) return NextStep::fail;
  switch (attempt.answer.kind) {
    case PushAnswer::Kind::accepted:
      return NextStep::done;
    case PushAnswer::Kind::refused:
    case PushAnswer::Kind::lost:
      return NextStep::again;
    case PushAnswer::Kind::not_sent:
      if (attempt.refused_connections >= kMaxRefusedConnections) return NextStep::fail;
      return attempt.answer.error.is_transient() ? NextStep::again : NextStep::fail;
  }
  return NextStep::fail;
}

Error final_error(const PushAnswer& answer, bool maybe_pushed) {
  Error error = answer.error;
  if (maybe_pushed) {
    error.code = ErrorCode::timeout;
    error.message = "it is not known whether the commit was pushed: " + error.message;
  }
  return error;
}

}  // namespace gitops::app_proxy
