#include "control-plane/accounts/authenticator.hpp"

#include <set>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/tokens.hpp"

namespace gitops::control_plane_server {
namespace {

using namespace std::chrono_literals;
using Found = Result<CallerPtr>;

constexpr const char* kAccepted =
    "gitops_control_plane_credential_checks_total{result=\"accepted\"} ";

Authenticator::Options options_of(Clock::duration ttl = 30s) {
  return {.ttl = ttl, .cookie = CookieForm::plain, .own_origins = {"https://console.example"}};
}

Task<Found> ask(Authenticator& authenticator, http::Headers headers, std::string peer = "p") {
  co_return co_await authenticator.authenticate(headers, peer, deadline_after(20s));
}

ErrorCode code_of(const Found& found) {
  return found ? ErrorCode::internal : found.error().code;
}

TEST(Authenticator, EachFormOfACredentialIsTheUser) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    Authenticator authenticator(fixture.database, fixture.metrics, options_of());
    const std::string key(fixture.sample.bob_key.reveal());
    const std::string session(fixture.sample.bob_session.reveal());
    for (const auto& headers :
         std::vector<http::Headers>{{{"Authorization", key}},
                                    {{"Authorization", "Bearer " + key}},
                                    {{"x-access-token", key}},
                                    {{"x-access-token", session}},
                                    {{"Cookie", "theme=dark; session=" + key}},
                                    {{"Cookie", "session=" + session}}}) {
      const auto bob = co_await ask(authenticator, headers);
      CO_ASSERT_OK(bob);
      EXPECT_EQ((*bob)->user_id, fixture.sample.bob.id) << headers.begin()->first;
      EXPECT_EQ((*bob)->account->id, fixture.sample.acme.id);
      EXPECT_FALSE((*bob)->is_admin);
      EXPECT_FALSE((*bob)->is_runtime());
    }
    const auto prod = co_await ask(authenticator, authorization(fixture.sample.prod_token));
    CO_ASSERT_OK(prod);
    EXPECT_TRUE((*prod)->is_runtime());
    EXPECT_EQ((*prod)->runtime, "prod");
    EXPECT_EQ((*prod)->user_id, "");
    const auto ann = co_await ask(authenticator, authorization(fixture.sample.ann_key));
    CO_ASSERT_OK(ann);
    EXPECT_TRUE((*ann)->is_admin);
    EXPECT_TRUE((*ann)->is_system_admin);
  });
}

TEST(Authenticator, AC_33_NoneAndUnknownOnesAreUnauthenticatedAlike) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    Authenticator authenticator(fixture.database, fixture.metrics, options_of());
    std::set<std::string> messages;
    for (const auto& headers : std::vector<http::Headers>{
             {},
             {{"Authorization", ""}},
             {{"Authorization", "nobody.0000"}},
             {{"Authorization", "0123456789abcdef01234567." + std::string(43, 'a')}},
             {{"Cookie", "session=nobody"}},
             {{"Cookie", "session=" + std::string(43, 'a')}}}) {
      const auto nobody = co_await ask(authenticator, headers);
      CO_ASSERT_TRUE(!nobody);
      EXPECT_EQ(nobody.error().code, ErrorCode::unauthenticated);
      EXPECT_EQ(nobody.error().http_status, 401);
      messages.insert(nobody.error().message);
    }
    EXPECT_EQ(messages.size(), 1U);
  });
}

TEST(Authenticator, AnAnswerIsRememberedForAShortTime) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    Authenticator authenticator(fixture.database, fixture.metrics, options_of(30s));
    const auto headers = authorization(fixture.sample.bob_key);
    for (int i = 0; i < 3; ++i) CO_ASSERT_OK(co_await ask(authenticator, headers));
    EXPECT_TRUE(fixture.counts(kAccepted + std::string("1")));
    CO_ASSERT_OK(co_await fixture.write([&](store::Connection& db) {
      return revoke_keys_of_user(db, fixture.sample.acme.number, fixture.sample.bob.id);
    }));
    EXPECT_TRUE(co_await ask(authenticator, headers));
    co_await sleep_for(31s);
    EXPECT_EQ(code_of(co_await ask(authenticator, headers)), ErrorCode::unauthenticated);
  });
}

TEST(Authenticator, AC_33_AKeyExpiresAlthoughTheAnswerIsRemembered) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    Authenticator authenticator(fixture.database, fixture.metrics, options_of(30s));
    const auto issued = must(co_await fixture.write([&](store::Connection& db) {
      return create_user_key(db, fixture.sample.acme.number, fixture.sample.bob.id,
                             {.name = "short", .expires_at = micros_at(wall_now() + 10s)},
                             micros_at(wall_now()));
    }));
    const auto headers = authorization(issued.text);
    CO_ASSERT_OK(co_await ask(authenticator, headers));
    co_await sleep_for(9s);
    EXPECT_TRUE(co_await ask(authenticator, headers));
    co_await sleep_for(1s);
    EXPECT_EQ(code_of(co_await ask(authenticator, headers)), ErrorCode::unauthenticated);
  });
}

TEST(Authenticator, AC_33_ARevokedKeyIsForgottenAtOnce) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    Authenticator authenticator(fixture.database, fixture.metrics, options_of());
    const auto bob = authorization(fixture.sample.bob_key);
    const auto session =
        http::Headers{{"Cookie", "session=" + std::string(fixture.sample.bob_session.reveal())}};
    const auto ann = authorization(fixture.sample.ann_key);
    const auto eve = authorization(fixture.sample.eve_key);
    for (const auto& headers : {bob, session, ann, eve}) {
      CO_ASSERT_OK(co_await ask(authenticator, headers));
    }
    CO_ASSERT_OK(co_await fixture.write(
        [&](store::Connection& db) { return set_disabled(db, fixture.sample.bob.id, true); }));
    authenticator.forget(fixture.sample.bob.id);
    EXPECT_EQ(code_of(co_await ask(authenticator, bob)), ErrorCode::unauthenticated);
    EXPECT_EQ(code_of(co_await ask(authenticator, session)), ErrorCode::unauthenticated);
    EXPECT_TRUE(fixture.counts(kAccepted + std::string("4")));
    EXPECT_TRUE(co_await ask(authenticator, ann));
    EXPECT_TRUE(fixture.counts(kAccepted + std::string("4"))) << "others are still known";

    authenticator.forget(fixture.sample.acme.id);
    EXPECT_TRUE(co_await ask(authenticator, ann));
    EXPECT_TRUE(co_await ask(authenticator, eve));
    EXPECT_TRUE(fixture.counts(kAccepted + std::string("5"))) << "the other account is still known";
    authenticator.forget("");
    EXPECT_TRUE(co_await ask(authenticator, eve));
    EXPECT_TRUE(fixture.counts(kAccepted + std::string("6")));
    // The user is enabled again; forget() evicts the cached refusal.
    CO_ASSERT_OK(co_await fixture.write(
        [&](store::Connection& db) { return set_disabled(db, fixture.sample.bob.id, false); }));
    authenticator.forget(fixture.sample.bob.id);
    EXPECT_TRUE(co_await ask(authenticator, bob));
  });
}

TEST(Authenticator, RequestsWithOneTokenWaitForOneQuestion) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    Authenticator authenticator(fixture.database, fixture.metrics, options_of());
    const auto headers = authorization(fixture.sample.bob_key);
    // A client that disconnects does not cancel the query of the others.
    TaskGroup leaving(fixture.executor);
    leaving.spawn("leaving", [&]() -> Task<> { (void)co_await ask(authenticator, headers); });
    TaskGroup group(fixture.executor);
    int found = 0;
    for (int i = 0; i < 20; ++i) {
      group.spawn("request", [&]() -> Task<> {
        if (co_await ask(authenticator, headers)) ++found;
      });
    }
    group.spawn("client", [&]() -> Task<> {
      leaving.cancel();
      co_await leaving.join();
    });
    co_await group.join();
    EXPECT_EQ(found, 20);
    EXPECT_TRUE(fixture.counts(kAccepted + std::string("1")));
  });
}

TEST(Authenticator, AC_35_AnAddressHasFewWrongAttempts) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    Authenticator authenticator(fixture.database, fixture.metrics, options_of(10s));
    CO_ASSERT_OK(co_await ask(authenticator, authorization(fixture.sample.ann_key)));
    for (int i = 0; i < 20; ++i) {
      const auto wrong = token_text(std::string(32, static_cast<char>(i)));
      EXPECT_EQ(code_of(co_await ask(authenticator, authorization(wrong))),
                ErrorCode::unauthenticated);
    }
    const auto limited = co_await ask(authenticator, authorization(fixture.sample.bob_key));
    CO_ASSERT_TRUE(!limited);
    EXPECT_EQ(limited.error().code, ErrorCode::too_many_requests);
    EXPECT_EQ(limited.error().http_status, 429);
    EXPECT_GT(limited.error().retry_after.count(), 0);
    // Other addresses and authenticated callers are served.
    EXPECT_TRUE(co_await ask(authenticator, authorization(fixture.sample.bob_key), "another"));
    EXPECT_TRUE(co_await ask(authenticator, authorization(fixture.sample.ann_key)));
    co_await sleep_for(5s);
    EXPECT_TRUE(co_await ask(authenticator, authorization(fixture.sample.eve_key)));
  });
}

// The programs of a runtime go on with its token when it is revoked, often from the address of many others.
TEST(Authenticator, TheSameWrongTokenAgainIsNoFurtherAttempt) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    Authenticator authenticator(fixture.database, fixture.metrics, options_of());
    const auto revoked = authorization(token_text(std::string(32, 'x')));
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 30; ++i) {
        EXPECT_EQ(code_of(co_await ask(authenticator, revoked)), ErrorCode::unauthenticated);
      }
      co_await sleep_for(11s);
    }
    // It is asked for again, since it may have become valid.
    EXPECT_TRUE(
        fixture.counts("gitops_control_plane_credential_checks_total{result=\"refused\"} 3"));
    for (int i = 0; i < 19; ++i) {
      const auto wrong = token_text(std::string(32, static_cast<char>(i)));
      EXPECT_EQ(code_of(co_await ask(authenticator, authorization(wrong))),
                ErrorCode::unauthenticated);
    }
    EXPECT_TRUE(co_await ask(authenticator, authorization(fixture.sample.bob_key)));
  });
}

TEST(Authenticator, AC_35_ARefusedTokenIsNotAskedForAgainAtOnce) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    Authenticator authenticator(fixture.database, fixture.metrics, options_of());
    const auto wrong = authorization(token_text(std::string(32, 'x')));
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(code_of(co_await ask(authenticator, wrong)), ErrorCode::unauthenticated);
    }
    EXPECT_TRUE(
        fixture.counts("gitops_control_plane_credential_checks_total{result=\"refused\"} 1"));
  });
}

TEST(Authenticator, AC_32_TheCookieDoesNotCountForPagesOfOtherSites) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    Authenticator authenticator(fixture.database, fixture.metrics, options_of());
    const std::string session(fixture.sample.bob_session.reveal());
    const auto from = [&](std::string name, std::string value) {
      return http::Headers{{"Host", "cp.example"},
                           {"Cookie", "session=" + session},
                           {std::move(name), std::move(value)}};
    };
    EXPECT_TRUE(co_await ask(authenticator, from("Sec-Fetch-Site", "same-origin")));
    EXPECT_TRUE(co_await ask(authenticator, from("Origin", "https://cp.example")));
    EXPECT_TRUE(co_await ask(authenticator, from("Origin", "https://console.example")));
    EXPECT_EQ(code_of(co_await ask(authenticator, from("Sec-Fetch-Site", "cross-site"))),
              ErrorCode::unauthenticated);
    EXPECT_EQ(code_of(co_await ask(authenticator, from("Origin", "https://evil.example"))),
              ErrorCode::unauthenticated);
    // The SDK sends a host as its origin, together with a key.
    auto sdk = authorization(fixture.sample.bob_key);
    sdk.add("origin", "cp.example:443");
    EXPECT_TRUE(co_await ask(authenticator, sdk));
  });
}

TEST(Authenticator, AnOutageIsNoRefusal) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    Authenticator authenticator(fixture.database, fixture.metrics, options_of());
    CO_ASSERT_OK(co_await ask(authenticator, authorization(fixture.sample.ann_key)));
    fixture.database.close(1s);
    const auto bob = co_await ask(authenticator, authorization(fixture.sample.bob_key));
    CO_ASSERT_TRUE(!bob);
    EXPECT_EQ(bob.error().code, ErrorCode::unavailable);
    EXPECT_EQ(bob.error().http_status, 503);
    EXPECT_GT(bob.error().retry_after.count(), 0);
    EXPECT_TRUE(co_await ask(authenticator, authorization(fixture.sample.ann_key))) << "is known";
    EXPECT_GE(fixture.log.count("the database cannot be asked"), 1U);
  });
}

TEST(Authenticator, ARuntimesLastContactIsRecordedOnceAMinute) {
  with_accounts([](AccountsFixture& fixture) -> Task<> {
    Authenticator authenticator(fixture.database, fixture.metrics, options_of(5s));
    const auto seen = [&]() -> Task<Result<std::int64_t>> {
      static constexpr store::Statement kSeen{.name = "test.seen",
                                              .sql = "SELECT seen_at FROM runtime"};
      co_return co_await fixture.database.read(AccountsFixture::soon(),
                                               [](store::Connection& db) -> Result<std::int64_t> {
                                                 const auto rows = db.run(kSeen);
                                                 if (!rows) return std::unexpected(rows.error());
                                                 return rows->number(0, 0);
                                               });
    };
    const auto headers = authorization(fixture.sample.prod_token);
    CO_ASSERT_OK(co_await ask(authenticator, headers));
    const auto first = co_await seen();
    CO_ASSERT_OK(first);
    EXPECT_EQ(*first, micros_at(wall_now()));
    co_await sleep_for(10s);
    CO_ASSERT_OK(co_await ask(authenticator, headers));
    EXPECT_EQ(must(co_await seen()), *first);
    co_await sleep_for(51s);
    CO_ASSERT_OK(co_await ask(authenticator, headers));
    EXPECT_EQ(must(co_await seen()), micros_at(wall_now()));
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
