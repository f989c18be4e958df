#include "app-proxy/integrations/validity_check.hpp"

#include <gmock/gmock.h>

#include "app-proxy/integrations/integrations_fixture.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using test::FakeGitHost;
using test::soon;

TEST(ValidityPauses, SpreadAPeriodOverItsTokens) {
  std::minstd_rand random(1);
  std::chrono::milliseconds sum{0};
  for (int i = 0; i < 1000; ++i) {
    const auto pause = pause_between_checks(1h, 100, random);
    ASSERT_GE(pause, 18s);
    ASSERT_LE(pause, 54s);
    sum += pause;
  }
  EXPECT_NEAR(static_cast<double>(sum.count()), 36e6, 2e6);
  EXPECT_GE(pause_between_checks(1h, 0, random), 30min);
}

// A fixture whose transitions are recorded.
void with_check(const std::function<Task<>(IntegrationsFixture&,
                                           std::vector<GitIntegrations::Transition>&)>& body) {
  with_integrations([&](IntegrationsFixture& fixture) -> Task<> {
    std::vector<GitIntegrations::Transition> told;
    fixture.integrations.on_transition([&](const auto& transition) { told.push_back(transition); });
    CO_ASSERT_OK(co_await fixture.add());
    CO_ASSERT_OK(co_await fixture.register_user(kUser, FakeGitHost::kToken));
    co_await body(fixture, told);
  });
}

TEST(ValidityCheck, TellsATransitionOnce) {
  with_check([](IntegrationsFixture& fixture, auto& told) -> Task<> {
    ValidityCheck check(fixture.integrations, fixture.leadership, {});
    co_await check.round();
    EXPECT_TRUE(told.empty()) << "still valid";
    fixture.host.refuse_tokens(true);
    // Two replicas find it out at the same time.
    const auto stored = co_await fixture.store.get("default", "acc", soon());
    CO_ASSERT_OK(stored);
    co_await fixture.integrations.check(*stored, kUser.user_id, soon());
    co_await fixture.integrations.check(*stored, kUser.user_id, soon());
    co_await check.round();
    CO_ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].state, TokenState::invalid);
    EXPECT_EQ(told[0].user_id, kUser.user_id);
    EXPECT_EQ(told[0].integration, "default");
    fixture.host.refuse_tokens(false);
    co_await check.round();
    co_await check.round();
    CO_ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told[1].state, TokenState::valid);
  });
}

TEST(ValidityCheck, WhatCannotBeFoundOutIsNotInvalid) {
  with_check([](IntegrationsFixture& fixture, auto& told) -> Task<> {
    ValidityCheck check(fixture.integrations, fixture.leadership, {});
    fixture.host.fail_next(1, 500);
    co_await check.round();
    fixture.host.fail_next(1, 403);
    co_await check.round();
    fixture.host.fail_next(1, 429);
    co_await check.round();
    fixture.host.abort_next(2);
    co_await check.round();
    fixture.host.end_faults();
    co_await fixture.host.stop();
    co_await check.round();
    EXPECT_TRUE(told.empty());
    fixture.cluster.fail_next(3, 503);
    co_await check.round();
    fixture.cluster.end_faults();
    const auto stored = co_await fixture.store.get("default", "acc", soon());
    CO_ASSERT_OK(stored);
    EXPECT_EQ(stored->users.at(0).state, TokenState::valid);
  });
}

TEST(ValidityCheck, ANewTokenIsNotMarkedForTheOldOne) {
  with_check([](IntegrationsFixture& fixture, auto& told) -> Task<> {
    const auto before = co_await fixture.store.get("default", "acc", soon());
    CO_ASSERT_OK(before);
    CO_ASSERT_OK(co_await fixture.register_user(kUser, FakeGitHost::kToken));
    fixture.host.refuse_tokens(true);
    co_await fixture.integrations.check(*before, kUser.user_id, soon());
    EXPECT_TRUE(told.empty());
    const auto after = co_await fixture.store.get("default", "acc", soon());
    CO_ASSERT_OK(after);
    EXPECT_EQ(after->users.at(0).state, TokenState::valid);
  });
}

TEST(ValidityCheck, SealsAgainAfterTheRuntimeTokenRotated) {
  with_check([](IntegrationsFixture& fixture, auto& told) -> Task<> {
    fixture.seal.use(Secret("rotated"), Secret("iv"));
    ValidityCheck check(fixture.integrations, fixture.leadership, {});
    co_await check.round();
    const auto stored = co_await fixture.store.get("default", "acc", soon());
    CO_ASSERT_OK(stored);
    EXPECT_TRUE(fixture.seal.is_current(stored->users.at(0).sealed));
    EXPECT_TRUE(told.empty());
    // A new process knows the rotated token only.
    fixture.seal = TokenSeal();
    fixture.seal.use(Secret("rotated"), Secret("iv"));
    CO_ASSERT_OK(co_await fixture.integrations.open(kUser, "", soon()));
  });
}

}  // namespace
}  // namespace gitops::app_proxy
