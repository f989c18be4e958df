#include "app-proxy/git/push_rules.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

using Kind = PushAnswer::Kind;

PushAnswer answer(Kind kind, ErrorCode code = ErrorCode::unavailable) {
  return {.kind = kind, .error = {.code = code, .message = "x"}};
}

TEST(PushRules, TheBranchDecidesAboutAnEarlierPush) {
  EXPECT_EQ(step_of(std::nullopt, BranchState::moved), RoundStep::build);
  for (const auto kind : {Kind::lost, Kind::refused, Kind::not_sent}) {
    EXPECT_EQ(step_of(answer(kind), BranchState::has_ours), RoundStep::landed);
    EXPECT_EQ(step_of(answer(kind), BranchState::moved), RoundStep::build);
  }
  // The same commits again: they count once, whatever became of the push before.
  EXPECT_EQ(step_of(answer(Kind::lost), BranchState::same), RoundStep::push_again);
  EXPECT_EQ(step_of(answer(Kind::not_sent), BranchState::same), RoundStep::push_again);
  EXPECT_EQ(step_of(answer(Kind::refused), BranchState::same), RoundStep::refused);
}

TEST(PushRules, WhatFollowsFromARound) {
  const auto next = [](Kind kind, RoundStep step = RoundStep::build, std::size_t commits = 1,
                       unsigned rounds = 1, ErrorCode code = ErrorCode::unavailable) {
    return next_of(
        {.answer = answer(kind, code), .step = step, .commits = commits, .rounds = rounds});
  };
  EXPECT_EQ(next(Kind::accepted), NextStep::done);
  EXPECT_EQ(next(Kind::not_sent, RoundStep::landed), NextStep::done);
  EXPECT_EQ(next(Kind::refused), NextStep::again);
  EXPECT_EQ(next(Kind::lost), NextStep::again);
  EXPECT_EQ(next(Kind::refused, RoundStep::refused, 1), NextStep::fail);
  EXPECT_EQ(next(Kind::refused, RoundStep::refused, 2), NextStep::split);
  EXPECT_EQ(next(Kind::not_sent), NextStep::again);
  EXPECT_EQ(next(Kind::not_sent, RoundStep::build, 1, 1, ErrorCode::unauthenticated),
            NextStep::fail);
  EXPECT_EQ(next(Kind::refused, RoundStep::build, 1, kMaxRounds), NextStep::fail);
  EXPECT_EQ(next(Kind::accepted, RoundStep::build, 1, kMaxRounds), NextStep::done);
}

TEST(PushRules, AServerThatIsNotThereIsGivenUp) {
  Attempt attempt{.answer = answer(Kind::not_sent)};
  for (attempt.refused_connections = 0; attempt.refused_connections < kMaxRefusedConnections;
       ++attempt.refused_connections) {
    EXPECT_EQ(next_of(attempt), NextStep::again);
  }
  EXPECT_EQ(next_of(attempt), NextStep::fail);
}

TEST(PushRules, AnUnknownOutcomeIsSaid) {
  EXPECT_EQ(final_error(answer(Kind::refused, ErrorCode::forbidden), false).code,
            ErrorCode::forbidden);
  const auto unknown = final_error(answer(Kind::lost), true);
  EXPECT_EQ(unknown.code, ErrorCode::timeout);
  EXPECT_TRUE(unknown.message.contains("not known whether"));
}

}  // namespace
}  // namespace gitops::app_proxy
