#include "app-proxy/users/directory.hpp"

#include <gmock/gmock.h>

#include "app-proxy/users_fixture.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using Found = Result<std::shared_ptr<const User>>;

// A directory that knows its own account.
void with_directory(UserDirectory::Options options,
                    const std::function<Task<>(UsersFixture&, UserDirectory&)>& body) {
  with_users_fixture([&](UsersFixture& fixture) -> Task<> {
    UserDirectory users(fixture.executor, fixture.control_plane, fixture.runtime, fixture.metrics,
                        options);
    users.start();
    EXPECT_TRUE(co_await test::eventually([&] { return !users.own().account_id.empty(); },
                                          "the own account"));
    co_await body(fixture, users);
    co_await users.stop();
    EXPECT_FALSE(fixture.log.text().contains(".1\""));  // no token
  });
}

Task<Found> find(UserDirectory& users, const std::string& token, const std::string& peer = "p") {
  const auto credential = UsersFixture::token(token);
  co_return co_await users.find(credential, peer, deadline_after(20s));
}

TEST(UserDirectory, RemembersAnAnswerForAShortTime) {
  with_directory({.ttl = 30s}, [](UsersFixture& fixture, UserDirectory& users) -> Task<> {
    const auto before = fixture.asked("me");
    for (int i = 0; i < 3; ++i) {
      const auto ann = co_await find(users, "ann.1");
      CO_ASSERT_OK(ann);
      EXPECT_EQ((*ann)->id, "u-ann");
      EXPECT_TRUE((*ann)->is_admin);
    }
    EXPECT_EQ(fixture.asked("me") - before, 1U);
    fixture.platform.accounts().revoke("ann.1");
    EXPECT_TRUE(co_await find(users, "ann.1"));
    co_await sleep_for(31s);
    const auto gone = co_await find(users, "ann.1");
    CO_ASSERT_TRUE(!gone);
    EXPECT_EQ(gone.error().code, ErrorCode::unauthenticated);
  });
}

TEST(UserDirectory, TheRuntimeIsAUserWithoutAnId) {
  with_directory({}, [](UsersFixture& fixture, UserDirectory& users) -> Task<> {
    const auto own = co_await find(users, "runtime.1");
    CO_ASSERT_OK(own);
    EXPECT_TRUE((*own)->is_runtime);
    EXPECT_FALSE((*own)->is_admin);
    EXPECT_EQ((*own)->name, "prod");
    fixture.platform.accounts().add(
        "other.1", test::FakeAccounts::Runtime{.name = "stage", .account_id = "a1"});
    EXPECT_FALSE(co_await find(users, "other.1"));
  });
}

// The control plane names the runtime "-" for a key that no runtime may take, such as one for reading.
TEST(UserDirectory, AC_57_APageTokenIsForOneRuntimeAloneAndAKeyForReadingForNone) {
  with_directory({}, [](UsersFixture& fixture, UserDirectory& users) -> Task<> {
    for (const std::string runtime : {"prod", "stage", "-"}) {
      fixture.platform.accounts().add(
          "page." + runtime,
          test::FakeAccounts::User{
              .id = "u-bob", .name = "Bob", .account_id = "a1", .page_of_runtime = runtime});
    }
    const auto bob = co_await find(users, "page.prod");
    CO_ASSERT_OK(bob);
    EXPECT_EQ((*bob)->id, "u-bob");
    EXPECT_FALSE((*bob)->is_runtime);
    for (const char* token : {"page.stage", "page.-"}) {
      const auto replayed = co_await find(users, token);
      CO_ASSERT_TRUE(!replayed);
      EXPECT_EQ(replayed.error().code, ErrorCode::unauthenticated) << token;
    }
  });
}

TEST(UserDirectory, RequestsOfOneUserWaitForOneQuestion) {
  with_directory({}, [](UsersFixture& fixture, UserDirectory& users) -> Task<> {
    fixture.platform.delay_answers(2s);
    const auto before = fixture.asked("me");
    TaskGroup group(fixture.executor);
    int found = 0;
    for (int i = 0; i < 20; ++i) {
      group.spawn("request", [&]() -> Task<> {
        if (co_await find(users, "bob.1")) ++found;
      });
    }
    // One whose client leaves does not take the answer away from the others.
    TaskGroup leaving(fixture.executor);
    leaving.spawn("leaving", [&]() -> Task<> { (void)co_await find(users, "bob.1"); });
    co_await sleep_for(100ms);
    leaving.cancel();
    co_await leaving.join();
    co_await group.join();
    EXPECT_EQ(found, 20);
    EXPECT_EQ(fixture.asked("me") - before, 1U);
  });
}

TEST(UserDirectory, AnOutageIsNoRefusal) {
  with_directory({.ttl = 10s, .outage = 60s, .known_timeout = 2s, .retry = 5s},
                 [](UsersFixture& fixture, UserDirectory& users) -> Task<> {
                   CO_ASSERT_OK(co_await find(users, "bob.1"));
                   co_await sleep_for(11s);
                   // Silent: who is known waits a little once, and then not at all.
                   fixture.platform.delay_answers(30s);
                   auto begun = Clock::now();
                   EXPECT_TRUE(co_await find(users, "bob.1"));
                   EXPECT_LE(Clock::now() - begun, 2100ms);
                   co_await sleep_for(11s);  // the question has failed
                   fixture.platform.delay_answers(0s);
                   fixture.platform.fail_next(1000, 503, 0s, "graphql");
                   EXPECT_TRUE(co_await find(users, "bob.1"));
                   const auto asked = fixture.platform.count("POST", "graphql");
                   for (int i = 0; i < 10; ++i) EXPECT_TRUE(co_await find(users, "bob.1"));
                   EXPECT_EQ(fixture.platform.count("POST", "graphql"), asked);
                   const auto unknown = co_await find(users, "ann.1");
                   CO_ASSERT_TRUE(!unknown);
                   EXPECT_EQ(unknown.error().code, ErrorCode::unavailable);
                   co_await sleep_for(60s);
                   const auto late = co_await find(users, "bob.1");
                   CO_ASSERT_TRUE(!late);
                   EXPECT_EQ(late.error().code, ErrorCode::unavailable);
                   fixture.platform.end_faults();
                   EXPECT_TRUE(co_await find(users, "bob.1"));
                   // Nobody was counted as one who guesses.
                   EXPECT_TRUE(co_await find(users, "ann.1"));
                 });
}

TEST(UserDirectory, RefusalsAreRememberedAndCounted) {
  with_directory({.refused_ttl = 10s, .attempts = {.burst = 5, .period = 10s}},
                 [](UsersFixture& fixture, UserDirectory& users) -> Task<> {
                   const auto before = fixture.asked("me");
                   for (int i = 0; i < 5; ++i) {
                     const auto wrong = co_await find(users, "wrong.0");
                     CO_ASSERT_TRUE(!wrong);
                     EXPECT_EQ(wrong.error().code, ErrorCode::unauthenticated) << i;
                   }
                   EXPECT_EQ(fixture.asked("me") - before, 1U);
                   const auto sixth = co_await find(users, "another.0");
                   CO_ASSERT_TRUE(!sixth);
                   EXPECT_EQ(sixth.error().http_status, 429);
                   EXPECT_EQ(sixth.error().retry_after, 10s);
                   EXPECT_TRUE(co_await find(users, "bob.1", "elsewhere"));
                   // Known by now, so also from there.
                   EXPECT_TRUE(co_await find(users, "bob.1"));
                   co_await sleep_for(11s);
                   EXPECT_TRUE(co_await find(users, "ann.1"));
                 });
}

TEST(UserDirectory, ForgetsWhoAskedLongestAgo) {
  with_directory({.max_known = 2}, [](UsersFixture& fixture, UserDirectory& users) -> Task<> {
    (void)co_await find(users, "ann.1");
    (void)co_await find(users, "bob.1");
    (void)co_await find(users, "ann.1");
    (void)co_await find(users, "runtime.1");
    EXPECT_EQ(users.known(), 2U);
    const auto before = fixture.asked("me");
    EXPECT_TRUE(co_await find(users, "ann.1"));
    EXPECT_EQ(fixture.asked("me") - before, 0U);
    EXPECT_TRUE(co_await find(users, "bob.1"));
    EXPECT_EQ(fixture.asked("me") - before, 1U);
  });
}

// At a fresh installation the repository is set long after the start.
TEST(UserDirectory, FollowsTheOwnAccount) {
  with_directory(
      {.own_refresh = 60s, .own_incomplete = 5s},
      [](UsersFixture& fixture, UserDirectory& users) -> Task<> {
        EXPECT_EQ(users.own().shared_config_repo, "");
        co_await sleep_for(10min);
        test::FakeAccounts::Account account{
            .id = "a1", .name = "acme", .shared_config_repo = "https://git.test/acme/config"};
        fixture.platform.accounts().add(account);
        co_await sleep_for(6s);
        EXPECT_EQ(users.own().shared_config_repo, "https://git.test/acme/config");
        EXPECT_EQ(users.own().git_provider, "GITHUB");
        // Nothing is missing any more.
        const auto asked = fixture.asked("me");
        co_await sleep_for(10min);
        EXPECT_GE(fixture.asked("me") - asked, 8U);
        EXPECT_LE(fixture.asked("me") - asked, 11U);
        account.git_provider = "GITLAB";
        account.git_api_url = "https://git.test/api/v4";
        fixture.platform.accounts().add(account);
        co_await sleep_for(67s);
        EXPECT_EQ(users.own().git_provider, "GITLAB");
        EXPECT_EQ(users.own().git_api_url, "https://git.test/api/v4");
        EXPECT_THAT(fixture.log.text(), testing::HasSubstr("the account has changed"));
      });
}

TEST(UserDirectory, AFailedQuestionLeavesTheOwnAccountAsItWas) {
  with_directory({}, [](UsersFixture& fixture, UserDirectory& users) -> Task<> {
    test::FakeAccounts::Account account{
        .id = "a1", .name = "acme", .shared_config_repo = "https://git.test/acme/config"};
    auto& accounts = fixture.platform.accounts();
    accounts.add(account);
    EXPECT_TRUE(co_await test::eventually([&] { return !users.own().shared_config_repo.empty(); },
                                          "the account with its repository"));
    account.shared_config_repo = "https://git.test/acme/other";
    accounts.add(account);
    fixture.platform.fail_next(1000, 503, 0s, "graphql");
    co_await sleep_for(10min);
    fixture.platform.end_faults();
    for (const char* odd : {"{}", R"({"data":{"me":null}})", "<html>not today</html>",
                            R"({"data":{"me":{"runtimeName":"prod","activeAccount":null}}})"}) {
      accounts.answer_with(odd);
      co_await sleep_for(2min);
      EXPECT_EQ(users.own().account_id, "a1") << odd;
      EXPECT_EQ(users.own().shared_config_repo, "https://git.test/acme/config") << odd;
    }
    accounts.answer_with(std::nullopt);
    co_await sleep_for(67s);
    EXPECT_EQ(users.own().shared_config_repo, "https://git.test/acme/other");
  });
}

// The token of the runtime may become that of another account.
TEST(UserDirectory, UsersOfTheAccountBeforeAreForgotten) {
  with_directory(
      {.ttl = 1h, .outage = 1h}, [](UsersFixture& fixture, UserDirectory& users) -> Task<> {
        EXPECT_TRUE(co_await find(users, "ann.1"));
        fixture.platform.accounts().add({.id = "a2", .name = "other"});
        fixture.platform.accounts().add(
            "runtime.1", test::FakeAccounts::Runtime{.name = "prod", .account_id = "a2"});
        EXPECT_TRUE(co_await test::eventually([&] { return users.own().account_id == "a2"; },
                                              "the other account"));
        const auto ann = co_await find(users, "ann.1");
        CO_ASSERT_TRUE(!ann);
        EXPECT_EQ(ann.error().code, ErrorCode::unauthenticated);
      });
}

TEST(UserDirectory, NobodyIsKnownBeforeTheOwnAccount) {
  with_users_fixture([](UsersFixture& fixture) -> Task<> {
    fixture.platform.fail_next(3, 500, 0s, "graphql");
    UserDirectory users(fixture.executor, fixture.control_plane, fixture.runtime, fixture.metrics,
                        {});
    users.start();
    const auto early = co_await find(users, "ann.1");
    CO_ASSERT_TRUE(!early);
    EXPECT_EQ(early.error().http_status, 503);
    EXPECT_TRUE(co_await test::eventually([&] { return !users.own().account_id.empty(); },
                                          "the own account"));
    EXPECT_TRUE(co_await find(users, "ann.1"));
    co_await users.stop();
  });
}

// Nothing else has to end before the account is known.
TEST(UserDirectory, LearnsTheOwnAccountAsSoonAsTheRuntimeIsRegistered) {
  with_users_fixture([](UsersFixture& fixture) -> Task<> {
    RuntimeIdentity runtime(fixture.executor, Credential::fixed({}), Credential::fixed({}));
    UserDirectory users(fixture.executor, fixture.control_plane, runtime, fixture.metrics, {});
    users.start();
    co_await sleep_for(1h);
    EXPECT_EQ(fixture.asked("me"), 0U);
    runtime.set({.token = Secret("runtime.1"), .iv = Secret("iv")});
    EXPECT_TRUE(co_await users.own_changed().wait(deadline_after(100ms)));
    EXPECT_EQ(users.own().account_id, "a1");
    co_await users.stop();
  });
}

}  // namespace
}  // namespace gitops::app_proxy
