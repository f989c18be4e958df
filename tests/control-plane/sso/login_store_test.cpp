#include "control-plane/sso/login_store.hpp"

#include <set>

#include <gmock/gmock.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/provider_identities.hpp"
#include "control-plane/accounts/teams.hpp"

namespace gitops::control_plane_server::sso {
namespace {

using store::Engine;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Micros kMinute = 60 * kSecond;

class LoginStore : public testing::TestWithParam<Engine> {
 protected:
  LoginStore() : bed_(GetParam()), db(bed_.connection()), sample(make_sample(db)) {
    provider.name = "corp";
    provider.issuer = "https://idp.example";
    provider.account = "acme";
    provider.creates_users = true;
    claims.subject = "u-1";
    claims.user_name = "kim";
    claims.email = "kim@acme.example";
    claims.is_email_verified = true;
  }
  // The names of the mapped teams that a user is in.
  std::vector<std::string> teams_of(const std::string& user) {
    std::vector<std::string> names;
    for (const auto& team : must(list_teams(db, sample.acme.number))) {
      if (team.name == kUsersTeam) continue;
      for (const auto& one : team.users) {
        if (one.id == user) names.push_back(team.name);
      }
    }
    return names;
  }
  std::string_view refusal() {
    const auto done = sign_in(db, provider, claims, kNow);
    return done ? std::string_view() : done.error().subcode;
  }
  void set_email(const User& user, std::string_view email) {
    static constexpr store::Statement kSet{.name = "test.set_email",
                                           .sql = "UPDATE users SET email = $2 WHERE id = $1"};
    must(db.run(kSet, {user.id, email}));
  }

 private:
  StoreBed bed_;

 protected:
  store::Connection& db;
  SampleAccounts sample;
  ProviderSettings provider;
  Claims claims;
};

TEST_P(LoginStore, ALoginIsTakenOnceByItsBrowserAtItsProvider) {
  const Secret browser("the browser's cookie");
  const PendingLogin login{
      .provider = "corp", .browser = login_digest(browser.reveal()), .return_to = "/applications"};
  must(add_pending_login(db, "state", login, kNow));
  const auto take = [&](std::string_view state, std::string_view name, const Secret& from,
                        Micros now = kNow) {
    return must(take_pending_login(db, state, name, from, now));
  };
  EXPECT_FALSE(take("other", "corp", browser));
  EXPECT_FALSE(take("state", "other", browser));
  EXPECT_FALSE(take("state", "corp", Secret("another cookie")));
  EXPECT_FALSE(take("state", "corp", Secret()));
  // None of them has used it up.
  EXPECT_EQ(take("state", "corp", browser), "/applications");
  EXPECT_FALSE(take("state", "corp", browser));

  must(add_pending_login(db, "late", login, kNow));
  EXPECT_FALSE(take("late", "corp", browser, kNow + 10 * kMinute));
}

TEST_P(LoginStore, ForgetsExpiredLogins) {
  const PendingLogin login{.provider = "corp", .browser = login_digest("b"), .return_to = "/"};
  must(add_pending_login(db, "one", login, kNow));
  must(add_pending_login(db, "two", login, kNow + 10 * kMinute));
  static constexpr store::Statement kCount{.name = "test.count_logins",
                                           .sql = "SELECT count(*) FROM sso_login"};
  EXPECT_EQ(must(db.run(kCount)).number(0, 0), 1);
}

TEST_P(LoginStore, CreatesAUserOnceAndFindsItBySubject) {
  const auto first = must(sign_in(db, provider, claims, kNow));
  EXPECT_TRUE(first.is_new_user);
  EXPECT_EQ(first.user_name, "kim");
  const auto user = must(user_of_id(db, first.user_id));
  EXPECT_EQ(user.email, "kim@acme.example");
  EXPECT_EQ(user.seen_at, kNow);
  EXPECT_FALSE(user.is_system_admin);
  const auto session = must(find_session(db, session_hash(first.session)));
  ASSERT_TRUE(session);
  EXPECT_EQ(session->provider, "corp");
  // The name and the address may change at the provider.
  claims.user_name = "kim2";
  claims.email.clear();
  const auto again = must(sign_in(db, provider, claims, kNow));
  EXPECT_FALSE(again.is_new_user);
  EXPECT_EQ(again.user_id, first.user_id);
  // The same subject of another issuer is somebody else.
  provider.issuer = "https://other.example";
  EXPECT_NE(must(sign_in(db, provider, claims, kNow)).user_id, first.user_id);
}

TEST_P(LoginStore, ANameThatIsTakenIsNotShared) {
  claims.user_name = "ann";
  const auto one = must(sign_in(db, provider, claims, kNow));
  EXPECT_EQ(one.user_name, "ann (corp)");
  EXPECT_NE(one.user_id, sample.ann.id);
  claims.subject = "u-2";
  const auto two = must(sign_in(db, provider, claims, kNow));
  EXPECT_TRUE(two.user_name.starts_with("ann (corp ")) << two.user_name;
  claims.subject = "u-3";
  claims.user_name = std::string(300, 'x');
  claims.email.clear();
  EXPECT_EQ(must(sign_in(db, provider, claims, kNow)).user_name, "u-3");
}

// The audit log names runtimes and service accounts by these words, so no user has such a name.
TEST_P(LoginStore, AReservedNameDoesNotKeepAUserOut) {
  claims.user_name = "runtime team";
  const auto one = sign_in(db, provider, claims, kNow);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->user_name, "kim@acme.example");
  claims.subject = "service account 7";
  claims.email.clear();
  const auto two = sign_in(db, provider, claims, kNow);
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_TRUE(two->user_name.starts_with("corp ")) << two->user_name;
}

TEST_P(LoginStore, RefusesUsersThatItMayNotCreate) {
  provider.creates_users = false;
  EXPECT_EQ(refusal(), kUnknownUser);
  EXPECT_FALSE(must(user_of_identity(db, {.issuer = provider.issuer, .subject = "u-1"})));
}

TEST_P(LoginStore, JoinsByAVerifiedAddressOnlyWhenItMay) {
  set_email(sample.bob, "kim@acme.example");
  EXPECT_NE(must(sign_in(db, provider, claims, kNow)).user_id, sample.bob.id);
  provider.joins_by_email = true;
  claims.subject = "u-2";
  claims.is_email_verified = false;
  EXPECT_NE(must(sign_in(db, provider, claims, kNow)).user_id, sample.bob.id);
}

TEST_P(LoginStore, AJoinedUserHasNoPasswordAnyMore) {
  set_email(sample.bob, "kim@acme.example");
  provider.joins_by_email = true;
  EXPECT_TRUE(must(may_use_password(db, sample.bob)));
  const auto done = must(sign_in(db, provider, claims, kNow));
  EXPECT_EQ(done.user_id, sample.bob.id);
  EXPECT_TRUE(done.is_newly_joined);
  EXPECT_FALSE(must(may_use_password(db, sample.bob)));
  EXPECT_FALSE(must(find_session(db, session_hash(sample.bob_session))));
  // Another subject with the same address does not get the user.
  claims.subject = "u-2";
  EXPECT_NE(must(sign_in(db, provider, claims, kNow)).user_id, sample.bob.id);
}

TEST_P(LoginStore, NeverJoinsAnAdministratorOfTheInstallationOrSeveralUsers) {
  provider.joins_by_email = true;
  claims.email = "ann@acme.example";
  EXPECT_NE(must(sign_in(db, provider, claims, kNow)).user_id, sample.ann.id);
  claims.subject = "u-2";
  claims.email = "twice@acme.example";
  set_email(sample.bob, claims.email);
  must(create_user(db, sample.acme.number, {.name = "rob", .email = claims.email}, kNow));
  EXPECT_NE(must(sign_in(db, provider, claims, kNow)).user_id, sample.bob.id);
  // Nor a user of another account.
  claims.subject = "u-3";
  claims.email = "eve@other.example";
  set_email(sample.eve, claims.email);
  EXPECT_NE(must(sign_in(db, provider, claims, kNow)).user_id, sample.eve.id);
}

TEST_P(LoginStore, RefusesADisabledUser) {
  const auto done = must(sign_in(db, provider, claims, kNow));
  must(set_disabled(db, done.user_id, true));
  EXPECT_EQ(refusal(), kUserDisabled);
  // Nor is it joined.
  set_email(sample.bob, "bob@acme.example");
  must(set_disabled(db, sample.bob.id, true));
  provider.joins_by_email = true;
  claims.subject = "u-2";
  claims.email = "bob@acme.example";
  EXPECT_EQ(refusal(), kUserDisabled);
}

TEST_P(LoginStore, RefusesAUserWhoWasRemovedFromTheAccount) {
  const auto done = must(sign_in(db, provider, claims, kNow));
  must(remove_member(db, sample.acme.number, done.user_id));
  EXPECT_EQ(refusal(), kUnknownUser);
}

TEST_P(LoginStore, ARemovedUserIsANewOneAtItsNextLogin) {
  const auto done = must(sign_in(db, provider, claims, kNow));
  must(remove_user(db, done.user_id));
  const auto again = must(sign_in(db, provider, claims, kNow));
  EXPECT_TRUE(again.is_new_user);
  EXPECT_NE(again.user_id, done.user_id);
}

TEST_P(LoginStore, TeamsFollowTheGroupsThatAreMapped) {
  provider.teams = {{"dev", "developers"}, {"staff", "developers"}, {"ops", "operators"}};
  claims.groups = {"dev", "ops", "unmapped"};
  const auto first = must(sign_in(db, provider, claims, kNow));
  EXPECT_EQ(first.teams_joined, 2);
  EXPECT_THAT(teams_of(first.user_id), ElementsAre("developers", "operators"));
  // A team that no group has stays.
  const auto payments = must(create_team(db, sample.acme.number, "payments"));
  must(add_to_team(db, sample.acme.number, payments, first.user_id));
  claims.groups = {"staff"};
  const auto second = must(sign_in(db, provider, claims, kNow));
  EXPECT_EQ(second.teams_joined, 0);
  EXPECT_EQ(second.teams_left, 1);
  EXPECT_THAT(teams_of(first.user_id), ElementsAre("developers", "payments"));
  claims.groups.clear();
  EXPECT_EQ(must(sign_in(db, provider, claims, kNow)).teams_left, 1);
  EXPECT_THAT(teams_of(first.user_id), ElementsAre("payments"));
  provider.teams.clear();
  EXPECT_FALSE(must(sign_in(db, provider, claims, kNow)).changes_user());
}

TEST_P(LoginStore, RefusesALoginWhoseGroupsAreNotKnown) {
  claims.has_groups_elsewhere = true;
  EXPECT_EQ(refusal(), std::string_view());
  provider.teams = {{"dev", "developers"}};
  EXPECT_EQ(refusal(), kGroupsUnknown);
}

INSTANTIATE_TEST_SUITE_P(Engines, LoginStore, testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::control_plane_server::sso
