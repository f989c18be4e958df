#include "app-proxy/git/push_rules.hpp"

#include <algorithm>
#include <initializer_list>

#include "app-proxy/git/failure_codes.hpp"

namespace gitops::app_proxy {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return text.contains(part); });
}

}  // namespace

std::string_view cause_of_refusal(std::string_view refusal, std::string_view words) {
  const auto said = lower_case(std::string(refusal) + " " + std::string(words));
  if (has_any(said, {"no space left on device", "disk is full", "disk full"})) {
    return "the disk of the Git server is full; its administrator has to make room";
  }
  if (has_any(said, {"quota exceeded", "exceeds its quota", "exceeded its quota", "over quota",
                     "storage limit", "repository size limit"})) {
    return "a quota of the Git server is used up";
  }
  if (has_any(said, {"exceeds maximum allowed size", "file size limit", "large files detected"})) {
    return "the commit is larger than the Git server takes";
  }
  if (has_any(said, {"fsck error", "error in object"})) {
    return "an object does not pass the Git server's check (fsck)";
  }
  return {};
}

bool is_passing(std::string_view refusal, std::string_view words) {
  if (!cause_of_refusal(refusal, words).empty()) return false;
  const auto beside = lower_case(words);
  // The lock cannot be taken for a permanent reason.
  if (has_any(beside, {"exists; cannot create", "permission denied", "read-only file system"})) {
    return false;
  }
  const auto said = lower_case(refusal) + " " + beside;
  return has_any(
      said, {"failed to update ref", "failed to lock", "cannot lock ref", "lock failure",
             "transaction failed to start", "internal server error", "service unavailable",
             "temporarily", "currently unavailable", "try again later", "internal api unreachable",
             "internal api error", "deadline exceeded", "timed out"});
}

PushStep step_of(const std::optional<PushAnswer>& last, BranchState state) {
  if (!last) return PushStep::build;
  switch (state) {
    case BranchState::has_ours:
      return PushStep::landed;
    case BranchState::moved:
      return PushStep::build;
    case BranchState::same:
      return last->kind == PushAnswer::Kind::refused ? PushStep::refused : PushStep::push_again;
  }
  return PushStep::build;
}

NextStep next_of(const Attempt& attempt) {
  if (attempt.step == PushStep::landed) return NextStep::done;
  if (attempt.step == PushStep::refused) {
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
    case PushAnswer::Kind::not_now:
      return attempt.not_now < kMaxNotNow ? NextStep::again : NextStep::fail;
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
    error.message = "it is not known whether the commit was pushed: " +
                    (is_clone_failure(error)
                         ? std::string("the runtime cannot use its clone of the repository now")
                         : error.message);
    error.subcode = kOutcomeUnknown;
    error.http_status = 0;
  }
  return error;
}

}  // namespace gitops::app_proxy
