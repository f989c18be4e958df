#include "control-plane/accounts/page_tokens.hpp"

#include <gmock/gmock.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/identification.hpp"
#include "control-plane/accounts/scopes.hpp"
#include "control-plane/storage/retention.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Engine;
using testing::ElementsAre;

TEST(PageTokens, TheirFormIsNoOther) {
  const auto text = "page_" + std::string(43, 'a');
  EXPECT_TRUE(is_page_token_text(text));
  EXPECT_FALSE(is_page_token_text(text + "a"));
  EXPECT_FALSE(is_page_token_text(std::string(43, 'a')));
  EXPECT_FALSE(is_page_token_text("page_" + std::string(42, 'a') + "."));
}

struct PageTokenContract : testing::TestWithParam<Engine> {
  StoreBed bed{GetParam()};
  store::Connection& db = bed.connection();
  SampleAccounts sample = make_sample(db);
  std::int64_t acme = sample.acme.number;
  std::string session = session_hash(sample.bob_session);

  Secret token(Micros now = kNow) {
    return must(create_page_token(db, acme, session, "prod", now));
  }
  CallerPtr owner(const Secret& sent, Micros now = kNow) {
    return must(identify(db, sent, now)).caller;
  }
};

TEST_P(PageTokenContract, ATokenIsOfTheUserForOneRuntime) {
  const auto made = token();
  EXPECT_TRUE(is_page_token_text(made.reveal()));
  const auto caller = owner(made);
  ASSERT_NE(caller, nullptr);
  EXPECT_EQ(caller->user_id, sample.bob.id);
  EXPECT_EQ(caller->account->number, acme);
  EXPECT_EQ(caller->page_of_runtime, "prod");
  EXPECT_EQ(caller->runtime, "");
  EXPECT_THAT(caller->scopes, ElementsAre(kScopeAppProxy));
  EXPECT_EQ(caller->credential_id, session_id(session)) << "it is forgotten with the session";
  EXPECT_FALSE(caller->is_of_session) << "it begets no other token";
  EXPECT_TRUE(must(identify(db, made, kNow)).due.empty()) << "a runtime keeps no session alive";
  EXPECT_NE(made.reveal(), token().reveal());
}

TEST_P(PageTokenContract, ATokenEndsAfterFiveMinutesAndWithItsSession) {
  const auto made = token();
  EXPECT_NE(owner(made, kNow + kPageTokenLife - 1), nullptr);
  EXPECT_EQ(owner(made, kNow + kPageTokenLife), nullptr);
  const auto late = kNow + kSessionIdle - kSecond;
  const auto idle = token(late);
  EXPECT_NE(owner(idle, late), nullptr);
  EXPECT_EQ(owner(idle, kNow + kSessionIdle), nullptr);
  must(end_session(db, session));
  EXPECT_EQ(owner(made), nullptr);
}

TEST_P(PageTokenContract, ATokenEndsWithTheUserAndTheRuntime) {
  const auto made = token();
  must(db.run(kTestDropRuntime, {acme, "prod"}));
  EXPECT_EQ(owner(made), nullptr);
  must(db.run(kTestAddRuntime, {acme, "prod", kNow}));
  EXPECT_NE(owner(made), nullptr);
  must(set_disabled(db, sample.bob.id, true));
  EXPECT_EQ(owner(made), nullptr);
}

TEST_P(PageTokenContract, ATokenStaysInItsAccount) {
  const auto made = token();
  must(put_member(db, sample.other.number, sample.bob.id, false));
  must(set_active_account(db, sample.bob.id, sample.other.number));
  EXPECT_EQ(owner(made)->account->number, acme);
  must(remove_member(db, acme, sample.bob.id));
  EXPECT_EQ(owner(made), nullptr);
}

TEST_P(PageTokenContract, OnlyRuntimesOfTheAccountHaveTokens) {
  must(db.run(kTestAddRuntime, {sample.other.number, "theirs", kNow}));
  for (const auto* name : {"theirs", "nobody", ""}) {
    EXPECT_EQ(create_page_token(db, acme, session, name, kNow).error().code, ErrorCode::not_found)
        << name;
  }
}

TEST_P(PageTokenContract, OnlyAHashIsStoredAndForgotten) {
  constexpr store::Statement kAll{.name = "test.page_tokens", .sql = "SELECT hash FROM page_token"};
  const auto made = token();
  const auto rows = must(db.run(kAll));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.string(0, 0), session_hash(made));
  must(remove_expired(db, {.sessions = kNow + kPageTokenLife - 1}, 10));
  EXPECT_NE(owner(made), nullptr);
  must(remove_expired(db, {.sessions = kNow + kPageTokenLife}, 10));
  EXPECT_EQ(must(db.run(kAll)).size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Engines, PageTokenContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::control_plane_server
