#include "control-plane/accounts/login.hpp"

#include <set>

#include <gmock/gmock.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/identification.hpp"

namespace gitops::control_plane_server {
namespace {

using namespace std::chrono_literals;

struct LoginFixture {
  explicit LoginFixture(AccountsFixture& on, Login::Options options = {})
      : accounts(on), login(on.database, passwords, on.metrics, options) {}

  Task<Result<Login::Outcome>> log_in(std::string name, std::string password,
                                      std::string peer = "p") {
    co_return co_await login.log_in(std::move(name), Secret(std::move(password)), std::move(peer),
                                    deadline_after(20s));
  }

  AccountsFixture& accounts;
  Passwords passwords{accounts.metrics, kCheap};
  Login login;
};

void with_login(Login::Options options, const std::function<Task<>(LoginFixture&)>& body) {
  with_accounts([&](AccountsFixture& accounts) -> Task<> {
    LoginFixture fixture(accounts, options);
    co_await body(fixture);
    EXPECT_FALSE(accounts.log.text().contains("password\""));
  });
}

TEST(Login, TheRightPasswordBeginsASession) {
  with_login({}, [](LoginFixture& fixture) -> Task<> {
    const auto outcome = co_await fixture.log_in("bob", "bob's password");
    CO_ASSERT_OK(outcome);
    EXPECT_EQ(outcome->user_id, fixture.accounts.sample.bob.id);
    const auto found = co_await fixture.accounts.database.read(
        AccountsFixture::soon(), [&outcome, now = micros_at(wall_now())](store::Connection& db) {
          return identify(db, outcome->token, now);
        });
    CO_ASSERT_OK(found);
    CO_ASSERT_TRUE(found->caller);
    EXPECT_EQ(found->caller->name, "bob");
    const auto bob = co_await fixture.accounts.database.read(
        AccountsFixture::soon(), [](store::Connection& db) { return user_of_name(db, "bob"); });
    EXPECT_EQ(must(bob).seen_at, micros_at(wall_now()));
  });
}

TEST(Login, AC_34_AnUnknownUserADisabledOneAndAWrongPasswordLookTheSame) {
  with_login({}, [](LoginFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.accounts.write([&](store::Connection& db) {
      return set_disabled(db, fixture.accounts.sample.eve.id, true);
    }));
    std::set<std::string> messages;
    for (const auto& [name, password] : std::vector<std::pair<std::string, std::string>>{
             {"bob", "ann's password"},
             {"nobody", "bob's password"},
             {"eve", "eve's password"},
             {"", ""},
             {std::string("bob\0x", 5), "bob's password"},
             {"bob", std::string(2'000, 'a')},
             {std::string(1'000, 'b'), "bob's password"}}) {
      const auto outcome = co_await fixture.log_in(name, password);
      CO_ASSERT_TRUE(!outcome) << name;
      EXPECT_EQ(outcome.error().code, ErrorCode::unauthenticated);
      EXPECT_EQ(outcome.error().http_status, 401);
      messages.insert(outcome.error().message);
    }
    EXPECT_EQ(messages.size(), 1U);
    EXPECT_TRUE(fixture.accounts.counts("gitops_control_plane_logins_total{result=\"failed\"} 7"));
  });
}

TEST(Login, AC_35_AnAddressHasFewAttemptsWhateverTheName) {
  with_login({.per_address = {.burst = 3, .period = 1s}}, [](LoginFixture& fixture) -> Task<> {
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(co_await fixture.log_in("user" + std::to_string(i), "some password"));
    }
    const auto limited = co_await fixture.log_in("bob", "bob's password");
    CO_ASSERT_TRUE(!limited);
    EXPECT_EQ(limited.error().code, ErrorCode::too_many_requests);
    EXPECT_EQ(limited.error().http_status, 429);
    EXPECT_GT(limited.error().retry_after.count(), 0);
    EXPECT_TRUE(co_await fixture.log_in("bob", "bob's password", "another"));
    co_await sleep_for(1s);
    EXPECT_TRUE(co_await fixture.log_in("bob", "bob's password"));
  });
}

// A provider gives each customer 2^64 addresses of IPv6.
TEST(Login, AC_35_TheAddressesOfOneCustomerCountAsOne) {
  with_login({.per_address = {.burst = 3, .period = 1s}}, [](LoginFixture& fixture) -> Task<> {
    for (int i = 0; i < 3; ++i) {
      const auto number = std::to_string(i);
      EXPECT_FALSE(
          co_await fixture.log_in("user" + number, "some password", "2001:db8:1:2::" + number));
    }
    const auto limited = co_await fixture.log_in("bob", "bob's password", "2001:db8:1:2:3::1");
    CO_ASSERT_TRUE(!limited);
    EXPECT_EQ(limited.error().code, ErrorCode::too_many_requests);
    EXPECT_TRUE(co_await fixture.log_in("bob", "bob's password", "2001:db8:1:3::1"));
  });
}

TEST(Login, AC_35_AUserHasFewAttemptsWhateverTheAddress) {
  with_login({.per_user = {.burst = 3, .period = 1s}}, [](LoginFixture& fixture) -> Task<> {
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(co_await fixture.log_in("bob", "wrong", "p" + std::to_string(i)));
    }
    const auto limited = co_await fixture.log_in("bob", "bob's password", "another");
    CO_ASSERT_TRUE(!limited);
    EXPECT_EQ(limited.error().code, ErrorCode::too_many_requests);
    EXPECT_TRUE(co_await fixture.log_in("ann", "ann's password", "another"));
    // Unknown names are limited in the same way.
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(co_await fixture.log_in("nobody", "wrong"));
    const auto unknown = co_await fixture.log_in("nobody", "wrong");
    CO_ASSERT_TRUE(!unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::too_many_requests);
  });
}

TEST(Login, AHashOfLowerCostIsRaised) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    const PasswordCost higher{.memory_kib = 32, .passes = 2, .lanes = 1};
    Passwords passwords(fixture.metrics, higher);
    Login login(fixture.database, passwords, fixture.metrics, {});
    CO_ASSERT_OK(co_await login.log_in("bob", Secret(std::string("bob's password")), "p",
                                       deadline_after(20s)));
    const auto bob = must(co_await fixture.database.read(
        AccountsFixture::soon(), [](store::Connection& db) { return user_of_name(db, "bob"); }));
    EXPECT_FALSE(needs_rehash(bob.password, higher));
    EXPECT_TRUE(is_password_of(bob.password, Secret(std::string("bob's password"))));
  });
}

TEST(Login, AnOutageIsNoWrongPassword) {
  with_login({}, [](LoginFixture& fixture) -> Task<> {
    fixture.accounts.database.close(1s);
    const auto outcome = co_await fixture.log_in("bob", "bob's password");
    CO_ASSERT_TRUE(!outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::unavailable);
    EXPECT_EQ(outcome.error().http_status, 503);
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
