#include "control-plane/accounts/passwords.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "control-plane/accounts/first_start.hpp"
#include "support/run_coro.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr PasswordCost kLow{.memory_kib = 16, .passes = 1, .lanes = 1};
constexpr std::string_view kSalt = "0123456789abcdef";

Secret secret(std::string text) {
  return Secret(std::move(text));
}

TEST(Passwords, AHashIsAPhcStringOfArgon2id) {
  const auto phc = hash_password(secret("correct horse"), kSalt);
  EXPECT_TRUE(phc.starts_with("$argon2id$v=19$m=19456,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$")) << phc;
  EXPECT_TRUE(is_password_of(phc, secret("correct horse")));
  EXPECT_FALSE(is_password_of(phc, secret("correct horsf")));
  EXPECT_FALSE(is_password_of(phc, secret("")));
}

TEST(Passwords, WhatIsNoPhcStringOrCostsTooMuchOpensNothing) {
  for (const auto* phc : {"", "plain", "$argon2i$v=19$m=16,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAA",
                          "$argon2id$v=19$m=16,t=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAA",
                          "$argon2id$v=19$m=4194304,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAA",
                          "$argon2id$v=19$m=16,t=1000000,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAA"}) {
    EXPECT_FALSE(is_password_of(phc, secret("plain"))) << phc;
  }
}

TEST(Passwords, AHashOfLowerCostIsMadeAgain) {
  const auto low = hash_password(secret("correct horse"), kSalt, kLow);
  EXPECT_TRUE(needs_rehash(low));
  EXPECT_FALSE(needs_rehash(low, kLow));
  EXPECT_FALSE(needs_rehash(hash_password(secret("correct horse"), kSalt), kLow));
  EXPECT_TRUE(needs_rehash("plain"));
}

TEST(Passwords, AC_34_TheDummyHashCostsTheSameAndOpensNothing) {
  const auto dummy = dummy_hash(kLow);
  EXPECT_FALSE(needs_rehash(dummy, kLow));
  EXPECT_EQ(dummy.size(), hash_password(secret("any password"), kSalt, kLow).size());
  EXPECT_FALSE(is_password_of(dummy, secret("")));
  EXPECT_FALSE(is_password_of(dummy, secret("any password")));
}

TEST(Passwords, NewPasswordsHaveALength) {
  EXPECT_NE(password_mistake(secret("short")), "");
  EXPECT_EQ(password_mistake(secret("long enough")), "");
  EXPECT_NE(password_mistake(secret(std::string(1'025, 'a'))), "");
  const auto generated = generated_password();
  EXPECT_EQ(generated.reveal().size(), 26U);
  EXPECT_EQ(password_mistake(generated), "");
  EXPECT_FALSE(generated == generated_password());
}

TEST(Passwords, AnUnknownUserIsNeverRight) {
  test::run_coro([]() -> Task<> {
    Metrics metrics;
    Passwords passwords(metrics, kLow);
    const auto deadline = deadline_after(std::chrono::seconds(30));
    const auto phc = co_await passwords.hash(secret("correct horse"), deadline);
    CO_ASSERT_OK(phc);
    const auto right = co_await passwords.verify(*phc, secret("correct horse"), deadline);
    CO_ASSERT_OK(right);
    EXPECT_TRUE(right->is_right);
    EXPECT_FALSE(right->needs_rehash);
    const auto unknown = co_await passwords.verify("", secret("correct horse"), deadline);
    CO_ASSERT_OK(unknown);
    EXPECT_FALSE(unknown->is_right);
  });
}

TEST(Passwords, AC_35_TheQueueIsShort) {
  test::run_coro(
      []() -> Task<> {
        Metrics metrics;
        // Hashes take long enough to fill the queue: all calls are made before the loop continues.
        Passwords passwords(metrics, {.memory_kib = 4 * 1024, .passes = 4, .lanes = 1});
        TaskGroup group(co_await asio::this_coro::executor);
        int judged = 0;
        int refused = 0;
        for (int i = 0; i < 40; ++i) {
          group.spawn("login", [&]() -> Task<> {
            const auto verdict = co_await passwords.verify(
                "", secret("correct horse"), deadline_after(std::chrono::seconds(60)));
            if (verdict) ++judged;
            if (!verdict && verdict.error().code == ErrorCode::too_many_requests) ++refused;
          });
        }
        co_await group.join();
        EXPECT_EQ(judged + refused, 40);
        EXPECT_GE(judged, 8);
        EXPECT_GE(refused, 1);
      },
      std::chrono::seconds(60));
}

TEST(FirstStart, AnAdministratorIsDueWhileThereAreNoUsers) {
  EXPECT_TRUE(plan_first_start(false, false).creates_administrator);
  EXPECT_TRUE(plan_first_start(false, false).generates_password);
  EXPECT_TRUE(plan_first_start(false, true).creates_administrator);
  EXPECT_FALSE(plan_first_start(false, true).generates_password);
  EXPECT_FALSE(plan_first_start(true, false).creates_administrator);
  EXPECT_FALSE(plan_first_start(true, false).generates_password);
}

}  // namespace
}  // namespace gitops::control_plane_server
