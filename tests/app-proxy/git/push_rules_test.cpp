#include "app-proxy/git/push_rules.hpp"

#include <gmock/gmock.h>

#include "app-proxy/git/failure_codes.hpp"

namespace gitops::app_proxy {
namespace {

using Kind = PushAnswer::Kind;

PushAnswer answer(Kind kind, ErrorCode code = ErrorCode::unavailable) {
  return {.kind = kind, .error = {.code = code, .message = "x"}};
}

TEST(PushRules, TheBranchDecidesAboutAnEarlierPush) {
  EXPECT_EQ(step_of(std::nullopt, BranchState::moved), PushStep::build);
  for (const auto kind : {Kind::lost, Kind::refused, Kind::not_sent}) {
    EXPECT_EQ(step_of(answer(kind), BranchState::has_ours), PushStep::landed);
    EXPECT_EQ(step_of(answer(kind), BranchState::moved), PushStep::build);
  }
  // The same commits again: they count once, whatever became of the push before.
  EXPECT_EQ(step_of(answer(Kind::lost), BranchState::same), PushStep::push_again);
  EXPECT_EQ(step_of(answer(Kind::not_sent), BranchState::same), PushStep::push_again);
  EXPECT_EQ(step_of(answer(Kind::refused), BranchState::same), PushStep::refused);
  EXPECT_EQ(step_of(answer(Kind::not_now), BranchState::same), PushStep::push_again);
  EXPECT_EQ(step_of(answer(Kind::not_now), BranchState::moved), PushStep::build);
}

TEST(PushRules, WhatFollowsFromAnAttempt) {
  const auto next = [](Kind kind, PushStep step = PushStep::build, std::size_t commits = 1,
                       unsigned rounds = 1, ErrorCode code = ErrorCode::unavailable) {
    return next_of(
        {.answer = answer(kind, code), .step = step, .commits = commits, .rounds = rounds});
  };
  EXPECT_EQ(next(Kind::accepted), NextStep::done);
  EXPECT_EQ(next(Kind::not_sent, PushStep::landed), NextStep::done);
  EXPECT_EQ(next(Kind::refused), NextStep::again);
  EXPECT_EQ(next(Kind::lost), NextStep::again);
  EXPECT_EQ(next(Kind::refused, PushStep::refused, 1), NextStep::fail);
  EXPECT_EQ(next(Kind::refused, PushStep::refused, 2), NextStep::split);
  EXPECT_EQ(next(Kind::not_sent), NextStep::again);
  EXPECT_EQ(next(Kind::not_sent, PushStep::build, 1, 1, ErrorCode::unauthenticated),
            NextStep::fail);
  EXPECT_EQ(next(Kind::refused, PushStep::build, 1, kMaxRounds), NextStep::fail);
  EXPECT_EQ(next(Kind::accepted, PushStep::build, 1, kMaxRounds), NextStep::done);
}

TEST(PushRules, AServerThatIsNotThereIsGivenUp) {
  Attempt attempt{.answer = answer(Kind::not_sent)};
  for (attempt.refused_connections = 0; attempt.refused_connections < kMaxRefusedConnections;
       ++attempt.refused_connections) {
    EXPECT_EQ(next_of(attempt), NextStep::again);
  }
  EXPECT_EQ(next_of(attempt), NextStep::fail);
}

TEST(PushRules, ARefusalThatShouldPassIsTriedForAWhile) {
  Attempt attempt{.answer = answer(Kind::not_now)};
  for (attempt.not_now = 1; attempt.not_now < kMaxNotNow; ++attempt.not_now) {
    EXPECT_EQ(next_of(attempt), NextStep::again) << attempt.not_now;
  }
  EXPECT_EQ(next_of(attempt), NextStep::fail);
}

TEST(PushRules, RefusalsThatPassByThemselves) {
  EXPECT_TRUE(is_passing("failed to update ref",
                         "error: cannot lock ref 'refs/heads/main': Unable to create "
                         "'/srv/work.git/refs/heads/main.lock': File exists."));
  for (const char* reason :
       {"failed to lock", "cannot lock ref 'refs/heads/main'", "Internal Server Error",
        "Lock failure", "transaction failed to start"}) {
    EXPECT_TRUE(is_passing(reason, "")) << reason;
  }
  EXPECT_TRUE(
      is_passing("pre-receive hook declined",
                 "GitLab: The repository is temporarily read-only. Please try again later."));
  // GitLab's hook could not ask GitLab.
  for (const char* words :
       {"GitLab: Internal API unreachable", "GitLab: Internal API error (502)",
        "The repository is currently unavailable.", "Maintenance. Try again later, please."}) {
    EXPECT_TRUE(is_passing("pre-receive hook declined", words)) << words;
  }
  EXPECT_FALSE(is_passing("pre-receive hook declined", "Name a ticket and try again."));
  for (const char* reason :
       {"pre-receive hook declined", "protected branch hook declined", "unpacker error",
        "unpack index-pack abnormal exit", "deny updating a hidden ref", "fetch first"}) {
    EXPECT_FALSE(is_passing(reason, "")) << reason;
  }
  for (const char* words :
       {"error: cannot lock ref 'refs/heads/a/b': 'refs/heads/a' exists; cannot create "
        "'refs/heads/a/b'",
        "error: cannot lock ref 'refs/heads/a': Unable to create '/srv/a.lock': Permission denied",
        "error: cannot lock ref 'refs/heads/a': Unable to create '/srv/a.lock': Read-only file "
        "system",
        "error: cannot lock ref 'refs/heads/a': Unable to create '/srv/a.lock': No space left on "
        "device"}) {
    EXPECT_FALSE(is_passing("failed to update ref", words)) << words;
  }
}

TEST(PushRules, ARefusalNamesItsCause) {
  using testing::HasSubstr;
  EXPECT_THAT(cause_of_refusal("unpack unable to create temporary object directory",
                               "error: unable to write file: No space left on device"),
              HasSubstr("disk of the Git server is full"));
  EXPECT_THAT(cause_of_refusal("unpack unpack-objects abnormal exit", "fatal: Disk quota exceeded"),
              HasSubstr("quota"));
  EXPECT_THAT(cause_of_refusal("unpack index-pack abnormal exit",
                               "fatal: pack exceeds maximum allowed size (10 bytes)"),
              HasSubstr("larger than the Git server takes"));
  EXPECT_THAT(
      cause_of_refusal("unpack index-pack abnormal exit",
                       "error: object 1111: zeroPaddedFilemode\nfatal: fsck error in packed "
                       "object"),
      HasSubstr("fsck"));
  EXPECT_EQ(cause_of_refusal("pre-receive hook declined", "no"), "");
}

TEST(PushRules, AnUnknownOutcomeIsSaid) {
  EXPECT_EQ(final_error(answer(Kind::refused, ErrorCode::forbidden), false).code,
            ErrorCode::forbidden);
  const auto unknown = final_error(answer(Kind::lost), true);
  EXPECT_EQ(unknown.code, ErrorCode::timeout);
  EXPECT_TRUE(unknown.message.contains("not known whether"));
  const auto local = final_error({.error = {.code = ErrorCode::internal,
                                            .message = "writing /clones/x",
                                            .subcode = kDiskFull}},
                                 true);
  EXPECT_EQ(local.code, ErrorCode::timeout);
  EXPECT_TRUE(local.message.contains("not known whether")) << local.message;
  EXPECT_FALSE(local.message.contains("/clones")) << local.message;
}

}  // namespace
}  // namespace gitops::app_proxy
