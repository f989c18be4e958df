#include "app-proxy/users/rules.hpp"

#include <gmock/gmock.h>

#include "app-proxy/users_fixture.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;

const User kAnn{.id = "u-ann", .name = "Ann", .account_id = "a1", .is_admin = true};
const User kBob{.id = "u-bob", .name = "Bob", .account_id = "a1"};
const User kRuntimeItself{.name = "prod", .account_id = "a1", .is_runtime = true};
const Entity kShop{.cluster = "c1"};

void with_rules(const std::function<Task<>(UsersFixture&, Rules&, std::string& account)>& body) {
  with_users_fixture([&](UsersFixture& fixture) -> Task<> {
    fixture.platform.accounts().set_team("t1", {"u-bob"});
    fixture.platform.accounts().set_rules(nlohmann::json::parse(R"([{"id": "r1", "accountId": "a1",
        "entityType": "gitopsApplications", "teams": ["t1"], "actions": ["SYNC"],
        "attributes": [{"name": "CLUSTER", "value": "c1"}]}])"));
    std::string account = "a1";
    Rules rules(fixture.executor, fixture.control_plane, [&] { return account; }, fixture.metrics,
                {.refresh = 60s, .max_age = 900s});
    co_await body(fixture, rules, account);
    co_await rules.stop();
  });
}

ErrorCode code_of(const Result<void>& result) {
  return result ? ErrorCode::internal : result.error().code;
}

TEST(Rules, NothingButAdministrationIsAllowedBeforeTheyAreThere) {
  with_rules([](UsersFixture&, Rules& rules, std::string& account) -> Task<> {
    EXPECT_TRUE(rules.check(kAnn, Action::sync, kShop));
    EXPECT_EQ(code_of(rules.check(kBob, Action::sync, kShop)), ErrorCode::unavailable);
    account.clear();
    EXPECT_FALSE(co_await rules.refresh());
    EXPECT_EQ(code_of(rules.check(kBob, Action::sync, kShop)), ErrorCode::unavailable);
  });
}

TEST(Rules, AllowWhatTheyNameAndForbidTheRest) {
  with_rules([](UsersFixture& fixture, Rules& rules, std::string&) -> Task<> {
    EXPECT_TRUE(co_await rules.refresh());
    EXPECT_TRUE(rules.check(kBob, Action::sync, kShop));
    EXPECT_TRUE(rules.check(kBob, Action::refresh, kShop));
    EXPECT_EQ(code_of(rules.check(kBob, Action::app_rollback, kShop)), ErrorCode::forbidden);
    EXPECT_EQ(code_of(rules.check(kBob, Action::sync, {.cluster = "c2"})), ErrorCode::forbidden);
    EXPECT_EQ(code_of(rules.check(kBob, Action::sync, {.type = EntityType::workflows})),
              ErrorCode::forbidden);
    EXPECT_EQ(code_of(rules.check(kRuntimeItself, Action::sync, kShop)), ErrorCode::forbidden);
    EXPECT_TRUE(rules.check(kAnn, Action::app_rollback, {.cluster = "c2"}));
    fixture.platform.accounts().set_team("t1", {});
    EXPECT_TRUE(co_await rules.refresh());
    EXPECT_EQ(code_of(rules.check(kBob, Action::sync, kShop)), ErrorCode::forbidden);
  });
}

TEST(Rules, AllowNothingOnceTheyAreTooOld) {
  with_rules([](UsersFixture& fixture, Rules& rules, std::string&) -> Task<> {
    rules.start();
    co_await sleep_for(1s);
    EXPECT_TRUE(rules.check(kBob, Action::sync, kShop));
    fixture.platform.fail_next(100'000, 500);
    co_await sleep_for(14min);
    EXPECT_TRUE(rules.check(kBob, Action::sync, kShop));
    co_await sleep_for(3min);
    EXPECT_EQ(code_of(rules.check(kBob, Action::sync, kShop)), ErrorCode::unavailable);
    EXPECT_NE(rules.last_error(EntityType::gitops_applications), "");
    EXPECT_TRUE(rules.check(kAnn, Action::sync, kShop));
    fixture.platform.end_faults();
    co_await sleep_for(61s);
    EXPECT_TRUE(rules.check(kBob, Action::sync, kShop));
  });
}

TEST(Rules, ComeAgainInTheirPeriod) {
  with_rules([](UsersFixture& fixture, Rules& rules, std::string&) -> Task<> {
    rules.start();
    co_await sleep_for(10min + 30s);
    EXPECT_GE(fixture.asked("abacRules"), 9 * 7U);
    EXPECT_LE(fixture.asked("abacRules"), 12 * 7U);
  });
}

TEST(Rules, GarbageReplacesNothing) {
  with_rules([](UsersFixture& fixture, Rules& rules, std::string&) -> Task<> {
    EXPECT_TRUE(co_await rules.refresh());
    for (const char* garbage :
         {"<html>", "{}", R"({"data":{"abacRules":[7]}})",
          R"({"data":{"abacRules":[{"teams":["t1"],"actions":["SYNC"],"attributes":"all"}]}})"}) {
      fixture.platform.accounts().answer_with(garbage);
      EXPECT_FALSE(co_await rules.refresh()) << garbage;
      EXPECT_TRUE(rules.check(kBob, Action::sync, kShop));
      EXPECT_FALSE(rules.check(kBob, Action::sync, {.cluster = "c2"}));
    }
    fixture.platform.accounts().answer_with(std::nullopt);
  });
}

}  // namespace
}  // namespace gitops::app_proxy
