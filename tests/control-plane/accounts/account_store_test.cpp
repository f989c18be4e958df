#include "control-plane/accounts/account_store.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include <gmock/gmock.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/first_start.hpp"
#include "control-plane/accounts/identification.hpp"
#include "control-plane/accounts/invitations.hpp"
#include "control-plane/accounts/page_tokens.hpp"
#include "control-plane/accounts/provider_identities.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/rules.hpp"
#include "control-plane/accounts/service_accounts.hpp"
#include "control-plane/accounts/teams.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Engine;
using store::Statement;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<Statement> all_statements() {
  std::vector<Statement> all;
  for (const auto& part :
       {account_statements(), team_statements(), rule_statements(), key_statements(),
        session_statements(), identification_statements(), first_start_statements(),
        revocation_statements(), service_account_statements(), invitation_statements(),
        provider_identity_statements(), page_token_statements()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(AccountStatements, EachHasANameAndATextOfItsOwn) {
  std::set<std::string_view> names;
  for (const auto& statement : all_statements()) {
    EXPECT_TRUE(names.insert(statement.name).second) << statement.name;
    EXPECT_TRUE(statement.name.starts_with("accounts.")) << statement.name;
  }
}

TEST(AccountStatements, TenantsTablesAreReadByAccount) {
  // These statements run before the account is known: the owner of a credential, an invitation's token, and the accounts
  // of a user.
  const std::set<std::string_view> across{"accounts.find_key", "accounts.find_page_token",
                                          "accounts.accounts_of_user", "accounts.find_invitation",
                                          "accounts.take_invitation"};
  for (const auto& statement : all_statements()) {
    const auto touches = [&statement](std::string_view table) {
      for (const auto* verb : {"FROM ", "JOIN ", "UPDATE "}) {
        const auto at = statement.sql.find(verb + std::string(table));
        if (at == std::string_view::npos) continue;
        const auto end = at + std::string_view(verb).size() + table.size();
        if (end == statement.sql.size() || statement.sql[end] == ' ') return true;
      }
      return false;
    };
    const bool is_tenants =
        std::ranges::any_of(std::array{"member", "team", "team_member", "abac_rule", "api_key",
                                       "runtime", "service_account", "invitation", "page_token"},
                            touches);
    if (!is_tenants || across.contains(statement.name)) continue;
    EXPECT_TRUE(statement.sql.contains("account = $1")) << statement.name;
  }
}

TEST(AccountStore, NamesAreShortUtf8WithoutControlCharacters) {
  for (const auto* name : {"ann", "Ann Smith", "ann@acme.example", "Ánn"}) {
    EXPECT_EQ(name_mistake(name), "") << name;
  }
  for (const auto& name :
       {std::string(), std::string(" ann"), std::string("ann "), std::string("a\nb"),
        std::string("a\0b", 3), std::string("a\xff"), std::string(129, 'a')}) {
    EXPECT_NE(name_mistake(name), "") << name;
  }
}

TEST(AccountStore, AC_34_AForeignAccountLooksAsOneThatDoesNotExist) {
  Account mine;
  mine.number = 7;
  mine.id = "mine";
  Caller caller;
  caller.account = std::make_shared<const Account>(std::move(mine));
  EXPECT_EQ(must(account_number(caller, "")), 7);
  EXPECT_EQ(must(account_number(caller, "mine")), 7);
  const auto other = account_number(caller, "other");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::not_found);
}

struct AccountContract : testing::TestWithParam<Engine> {
  StoreBed bed{GetParam()};
  store::Connection& db = bed.connection();
  SampleAccounts sample = make_sample(db);

  Identification owner(const Secret& token, Micros now = kNow) {
    return must(identify(db, token, now));
  }
  bool is_refused(const Secret& token, Micros now = kNow) {
    return owner(token, now).caller == nullptr;
  }
};

TEST_P(AccountContract, EveryStatementIsPrepared) {
  for (const auto& statement : all_statements()) {
    const auto text = std::string(statement.text(GetParam()));
    const auto prepared = db.run_script(
        GetParam() == Engine::sqlite ? "EXPLAIN " + text
                                     : "PREPARE check_it AS " + text + "; DEALLOCATE check_it");
    EXPECT_TRUE(prepared) << statement.name << ": " << prepared.error().message;
  }
}

TEST_P(AccountContract, AnAccountIsFoundByItsNumberItsIdAndItsName) {
  EXPECT_EQ(must(account_of_number(db, sample.acme.number)).name, "acme");
  const auto account = must(account_of_id(db, sample.acme.id));
  EXPECT_EQ(account.number, sample.acme.number);
  EXPECT_THAT(account.admins, ElementsAre(sample.ann.id));
  EXPECT_EQ(must(account_of_name(db, "acme")).id, sample.acme.id);
  EXPECT_EQ(account_of_name(db, "ACME").error().code, ErrorCode::not_found);
  EXPECT_EQ(account_of_id(db, "").error().code, ErrorCode::not_found);
  const auto all = must(list_accounts(db));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "acme");
  EXPECT_EQ(all[1].name, "other");
}

TEST_P(AccountContract, NamesAreTakenOnce) {
  EXPECT_EQ(create_account(db, "acme", kNow).error().code, ErrorCode::conflict);
  EXPECT_EQ(create_user(db, sample.acme.number, {.name = "ann", .email = {}, .password = {}}, kNow)
                .error()
                .code,
            ErrorCode::conflict);
  EXPECT_EQ(create_account(db, "a\nb", kNow).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(create_team(db, sample.acme.number, "users").error().code, ErrorCode::conflict);
  EXPECT_EQ(create_team(db, sample.acme.number, "Big Team").error().code,
            ErrorCode::invalid_argument);
}

TEST_P(AccountContract, AUserIsAMember) {
  const auto user = must(user_of_name(db, "ann"));
  EXPECT_EQ(user.id, sample.ann.id);
  EXPECT_EQ(user.email, "ann@acme.example");
  EXPECT_EQ(user.active_account, sample.acme.number);
  EXPECT_TRUE(user.is_system_admin);
  EXPECT_TRUE(is_password_of(user.password, Secret(std::string("ann's password"))));
  const auto members = must(list_members(db, sample.acme.number));
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0].user.name, "ann");
  EXPECT_TRUE(members[0].is_admin);
  EXPECT_EQ(members[0].user.password, "");
  EXPECT_FALSE(members[1].is_admin);
  EXPECT_FALSE(must(find_member(db, sample.other.number, sample.ann.id)));
  EXPECT_EQ(must(list_users(db)).size(), 3U);
  EXPECT_EQ(user_of_name(db, "nobody").error().code, ErrorCode::not_found);
}

TEST_P(AccountContract, TheBuiltInTeamsFollowTheMembers) {
  const auto users_of = [&](std::string_view name) {
    std::vector<std::string> users;
    for (const auto& team : must(list_teams(db, sample.acme.number))) {
      if (team.name != name) continue;
      for (const auto& user : team.users) users.push_back(user.name);
    }
    return users;
  };
  EXPECT_THAT(users_of("users"), ElementsAre("ann", "bob"));
  EXPECT_THAT(users_of("admins"), ElementsAre("ann"));
  must(put_member(db, sample.acme.number, sample.bob.id, true));
  EXPECT_THAT(users_of("admins"), ElementsAre("ann", "bob"));
  must(put_member(db, sample.acme.number, sample.ann.id, false));
  EXPECT_THAT(users_of("admins"), ElementsAre("bob"));
  EXPECT_THAT(users_of("users"), ElementsAre("ann", "bob"));
  const auto teams = must(list_teams(db, sample.acme.number));
  EXPECT_EQ(remove_team(db, sample.acme.number, teams[0].id).error().code,
            ErrorCode::invalid_argument);
}

TEST_P(AccountContract, TeamsHaveMembersOfTheirAccount) {
  const auto id = must(create_team(db, sample.acme.number, "payments"));
  must(add_to_team(db, sample.acme.number, id, sample.bob.id));
  must(add_to_team(db, sample.acme.number, id, sample.bob.id));
  EXPECT_EQ(add_to_team(db, sample.acme.number, id, sample.eve.id).error().code,
            ErrorCode::not_found);
  EXPECT_EQ(add_to_team(db, sample.other.number, id, sample.eve.id).error().code,
            ErrorCode::not_found);
  const auto teams = must(list_teams(db, sample.acme.number));
  const auto found = std::ranges::find(teams, id, &Team::id);
  ASSERT_NE(found, teams.end());
  ASSERT_EQ(found->users.size(), 1U);
  EXPECT_EQ(found->users[0].name, "bob");
  must(remove_from_team(db, sample.acme.number, id, sample.bob.id));
  must(remove_team(db, sample.acme.number, id));
  EXPECT_EQ(must(list_teams(db, sample.acme.number)).size(), 2U);
}

TEST_P(AccountContract, AMemberThatIsRemovedLosesItsKeys) {
  EXPECT_FALSE(is_refused(sample.bob_key));
  must(remove_member(db, sample.acme.number, sample.bob.id));
  EXPECT_TRUE(is_refused(sample.bob_key));
  EXPECT_TRUE(is_refused(sample.bob_session)) << "a user without an account";
  EXPECT_THAT(must(list_keys(db, sample.acme.number, sample.bob.id)), IsEmpty());
  EXPECT_EQ(remove_member(db, sample.acme.number, sample.bob.id).error().code,
            ErrorCode::not_found);
}

TEST_P(AccountContract, GitSettingsAreTheAccounts) {
  EXPECT_EQ(must(suggest_shared_config_repo(db, sample.acme.number, "https://git.example/isc")),
            "https://git.example/isc");
  EXPECT_EQ(must(suggest_shared_config_repo(db, sample.acme.number, "https://git.example/late")),
            "https://git.example/isc");
  must(set_git_settings(db, sample.acme.number,
                        {.provider = "GITHUB",
                         .api_url = "https://api.github.com",
                         .shared_config_repo = "https://git.example/new"}));
  const auto account = must(account_of_id(db, sample.acme.id));
  EXPECT_EQ(account.git_provider, "GITHUB");
  EXPECT_EQ(account.git_api_url, "https://api.github.com");
  EXPECT_EQ(account.shared_config_repo, "https://git.example/new");
  EXPECT_EQ(must(account_of_id(db, sample.other.id)).shared_config_repo, "");
}

TEST_P(AccountContract, RulesAreStoredAsTheyCame) {
  const AbacRule given{.id = {},
                       .entity_type = "gitopsApplications",
                       .teams = {"t1", "t2"},
                       .tags = {"a \"tag\""},
                       .actions = {"SYNC"},
                       .attributes = {{.name = "LABEL", .key = "team", .value = "pay"},
                                      {.name = "CLUSTER", .key = {}, .value = "in"}}};
  const auto first = must(create_rule(db, sample.acme.number, given, kNow));
  const auto second = must(create_rule(db, sample.acme.number,
                                       {.id = {},
                                        .entity_type = "clusters",
                                        .teams = {"t1"},
                                        .tags = {},
                                        .actions = {"CREATE"},
                                        .attributes = {}},
                                       kNow + 1));
  const auto found = must(find_rule(db, sample.acme.number, first.id));
  EXPECT_EQ(found.teams, given.teams);
  EXPECT_EQ(found.tags, given.tags);
  EXPECT_EQ(found.actions, given.actions);
  ASSERT_EQ(found.attributes.size(), 2U);
  EXPECT_EQ(found.attributes[0].key, "team");
  EXPECT_EQ(found.attributes[1].key, std::nullopt);
  EXPECT_EQ(found.attributes[1].value, "in");
  EXPECT_EQ(must(list_rules(db, sample.acme.number, "clusters")).size(), 1U);
  const auto all = must(list_rules(db, sample.acme.number, ""));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].id, second.id);
  EXPECT_EQ(must(remove_rule(db, sample.acme.number, first.id)).entity_type, "gitopsApplications");
  EXPECT_EQ(find_rule(db, sample.acme.number, first.id).error().code, ErrorCode::not_found);
  EXPECT_EQ(create_rule(db, sample.acme.number,
                        {.id = {},
                         .entity_type = "clusters",
                         .teams = {},
                         .tags = {},
                         .actions = {"CREATE"},
                         .attributes = {}},
                        kNow)
                .error()
                .code,
            ErrorCode::invalid_argument);
}

TEST_P(AccountContract, AC_37_AnotherAccountsRulesKeysAndTeamsAreAbsent) {
  const auto rule = must(create_rule(db, sample.acme.number,
                                     {.id = {},
                                      .entity_type = "clusters",
                                      .teams = {"t1"},
                                      .tags = {},
                                      .actions = {"CREATE"},
                                      .attributes = {}},
                                     kNow));
  const auto other = sample.other.number;
  EXPECT_EQ(find_rule(db, other, rule.id).error().code, ErrorCode::not_found);
  EXPECT_EQ(remove_rule(db, other, rule.id).error().code, ErrorCode::not_found);
  EXPECT_THAT(must(list_rules(db, other, "")), IsEmpty());
  const auto key = must(list_keys(db, sample.acme.number, sample.bob.id)).at(0);
  EXPECT_EQ(key_of_account(db, other, key.id).error().code, ErrorCode::not_found);
  EXPECT_EQ(revoke_key(db, other, key.id).error().code, ErrorCode::not_found);
  EXPECT_EQ(update_key(db, other, key.id, "mine", {}).error().code, ErrorCode::not_found);
  EXPECT_THAT(must(revoke_runtime_tokens(db, other, "prod")), IsEmpty());
  EXPECT_FALSE(is_refused(sample.bob_key));
  EXPECT_FALSE(is_refused(sample.prod_token));
}

TEST_P(AccountContract, KeysAreListedChangedAndRevoked) {
  const auto issued = must(create_user_key(
      db, sample.acme.number, sample.bob.id,
      {.name = "ci", .scopes = {"pipeline:run"}, .expires_at = kNow + kHour}, kNow + 1));
  const auto keys = must(list_keys(db, sample.acme.number, sample.bob.id));
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[1].id, issued.key.id);
  EXPECT_THAT(keys[1].scopes, ElementsAre("pipeline:run"));
  EXPECT_TRUE(std::string(issued.text.reveal()).contains("." + keys[1].prefix));
  EXPECT_FALSE(std::string(issued.text.reveal()).contains(keys[1].hash));
  EXPECT_EQ(must(list_keys(db, sample.acme.number, "")).size(), 4U) << "and ann's, and prod's";
  must(update_key(db, sample.acme.number, issued.key.id, "deploy", {"a", "b"}));
  EXPECT_EQ(must(key_of_account(db, sample.acme.number, issued.key.id)).name, "deploy");
  EXPECT_FALSE(is_refused(issued.text));
  EXPECT_TRUE(is_refused(issued.text, kNow + kHour)) << "expired";
  must(revoke_key(db, sample.acme.number, issued.key.id));
  EXPECT_TRUE(is_refused(issued.text));
  EXPECT_EQ(create_user_key(db, sample.acme.number, sample.bob.id, {.name = "", .scopes = {}}, kNow)
                .error()
                .code,
            ErrorCode::invalid_argument);
}

TEST_P(AccountContract, ARuntimeHasOneToken) {
  const auto old = owner(sample.prod_token);
  ASSERT_TRUE(old.caller);
  EXPECT_EQ(old.caller->runtime, "prod");
  EXPECT_EQ(old.caller->user_id, "");
  EXPECT_EQ(old.caller->account->id, sample.acme.id);
  const auto issued = must(create_runtime_token(db, sample.acme.number, "prod", kNow));
  EXPECT_THAT(issued.revoked, ElementsAre(old.caller->credential_id));
  EXPECT_TRUE(is_refused(sample.prod_token));
  EXPECT_FALSE(is_refused(issued.text));
  EXPECT_FALSE(is_refused(sample.bob_key));
}

TEST_P(AccountContract, AC_33_WhoseOwnerIsGoneOpensNothing) {
  must(db.run(kTestDropRuntime, {sample.acme.number, "prod"}));
  EXPECT_TRUE(is_refused(sample.prod_token));
  must(set_disabled(db, sample.bob.id, true));
  EXPECT_TRUE(is_refused(sample.bob_key));
  EXPECT_TRUE(is_refused(sample.bob_session));
  must(set_disabled(db, sample.bob.id, false));
  EXPECT_FALSE(is_refused(sample.bob_key));
  EXPECT_TRUE(is_refused(sample.bob_session)) << "sessions ended when the user was disabled";
}

TEST_P(AccountContract, AC_33_ChangedAndForeignTokensOpenNothing) {
  const auto changed = [](const Secret& token, std::size_t at) {
    std::string text(token.reveal());
    text[at] = text[at] == 'a' ? 'b' : 'a';
    return Secret(std::move(text));
  };
  EXPECT_TRUE(is_refused(changed(sample.bob_key, 0)));
  EXPECT_TRUE(is_refused(changed(sample.bob_key, 30)));
  EXPECT_TRUE(is_refused(changed(sample.bob_session, 5)));
  // A key made of the id of one key and the secret of another.
  EXPECT_TRUE(is_refused(Secret(std::string(sample.bob_key.reveal().substr(0, 25)) +
                                std::string(sample.ann_key.reveal().substr(25)))));
  EXPECT_TRUE(is_refused(Secret(std::string(sample.bob_key.reveal().substr(25)))))
      << "a secret alone is no session";
  EXPECT_TRUE(is_refused(Secret(std::string("'; DROP TABLE users; --"))));
}

TEST_P(AccountContract, SessionsEnd) {
  const auto found = owner(sample.bob_session);
  ASSERT_TRUE(found.caller);
  EXPECT_EQ(found.caller->name, "bob");
  EXPECT_TRUE(found.caller->credential_id.starts_with("session-"));
  EXPECT_TRUE(is_refused(sample.bob_session, kNow + kSessionIdle));
  const auto hash = session_hash(sample.bob_session);
  must(set_session_seen(db, hash, kNow + kHour));
  EXPECT_FALSE(is_refused(sample.bob_session, kNow + kSessionIdle));
  must(end_session(db, hash));
  EXPECT_TRUE(is_refused(sample.bob_session));
}

TEST_P(AccountContract, ASessionIsInTheActiveAccount) {
  must(put_member(db, sample.other.number, sample.bob.id, true));
  EXPECT_EQ(owner(sample.bob_session).caller->account->name, "acme");
  EXPECT_FALSE(owner(sample.bob_session).caller->is_admin);
  must(set_active_account(db, sample.bob.id, sample.other.number));
  EXPECT_EQ(owner(sample.bob_session).caller->account->name, "other");
  EXPECT_TRUE(owner(sample.bob_session).caller->is_admin);
  EXPECT_EQ(owner(sample.bob_key).caller->account->name, "acme") << "a key belongs to one account";
  must(remove_member(db, sample.other.number, sample.bob.id));
  EXPECT_EQ(owner(sample.bob_session).caller->account->name, "acme");
}

TEST_P(AccountContract, TimesOfLastUseAreWrittenSeldom) {
  auto found = owner(sample.prod_token);
  EXPECT_EQ(found.due.runtime, "prod");
  EXPECT_FALSE(found.due.key_id.empty());
  must(write_times(db, found.due, kNow));
  EXPECT_TRUE(owner(sample.prod_token, kNow + kRuntimeSeenPeriod - 1).due.empty());
  found = owner(sample.prod_token, kNow + kRuntimeSeenPeriod);
  EXPECT_EQ(found.due.runtime, "prod");
  EXPECT_TRUE(found.due.key_id.empty());
  EXPECT_FALSE(owner(sample.prod_token, kNow + kKeyUsedPeriod).due.key_id.empty());
  EXPECT_TRUE(owner(sample.bob_session).due.empty());
  EXPECT_FALSE(owner(sample.bob_session, kNow + kSessionSeenPeriod).due.session_hash.empty());
  const auto keys = must(list_keys(db, sample.acme.number, ""));
  const auto prod = std::ranges::find(keys, "prod", &ApiKey::runtime);
  ASSERT_NE(prod, keys.end());
  EXPECT_EQ(prod->used_at, kNow);
}

TEST_P(AccountContract, APasswordHashIsReplacedUnlessThePasswordWasChanged) {
  const auto before = must(user_of_id(db, sample.bob.id)).password;
  must(replace_password_hash(db, sample.bob.id, before, "better"));
  EXPECT_EQ(must(user_of_id(db, sample.bob.id)).password, "better");
  must(replace_password_hash(db, sample.bob.id, before, "late"));
  EXPECT_EQ(must(user_of_id(db, sample.bob.id)).password, "better");
  must(set_password(db, sample.bob.id, "new"));
  EXPECT_EQ(must(user_of_id(db, sample.bob.id)).password, "new");
}

TEST_P(AccountContract, ARevocationIsReadUntilItIsOld) {
  must(add_revocation(db, {.account = sample.acme.number, .subject = "k1", .runtime = ""}, kNow));
  must(add_revocation(db, {.account = sample.acme.number, .subject = "k2", .runtime = "prod"},
                      kNow + kSecond));
  const auto since = must(revocations_since(db, kNow));
  ASSERT_EQ(since.size(), 2U);
  EXPECT_EQ(since[0].subject, "k1");
  EXPECT_EQ(since[1].subject, "k2");
  EXPECT_EQ(must(revocations_since(db, kNow + 1)).size(), 1U);
  // A tunnel that is still to be disconnected outlives the rest.
  must(remove_old_revocations(db, kNow + kHour));
  EXPECT_EQ(must(revocations_since(db, 0)).size(), 1U);
  const auto pending = must(pending_tunnels(db));
  ASSERT_EQ(pending.size(), 1U);
  EXPECT_EQ(pending[0].account, sample.acme.id);
  EXPECT_EQ(pending[0].runtime, "prod");
  EXPECT_EQ(pending[0].since, kNow + kSecond);
  must(finish_tunnel(db, pending[0].id));
  EXPECT_THAT(must(pending_tunnels(db)), IsEmpty());
  must(remove_old_revocations(db, kNow + kHour));
  EXPECT_THAT(must(revocations_since(db, 0)), IsEmpty());
}

TEST_P(AccountContract, ANewTokenOfARuntimeRevokesItsTunnel) {
  EXPECT_THAT(must(pending_tunnels(db)), IsEmpty());
  const auto token = must(create_runtime_token(db, sample.acme.number, "prod", kNow + kSecond));
  ASSERT_EQ(token.revoked.size(), 1U);
  const auto pending = must(pending_tunnels(db));
  ASSERT_EQ(pending.size(), 1U);
  EXPECT_EQ(pending[0].runtime, "prod");
  EXPECT_EQ(must(revocations_since(db, 0)).at(0).subject, token.revoked[0]);
}

TEST_P(AccountContract, AServiceAccountHasKeysTeamsAndAName) {
  const auto acme = sample.acme.number;
  const auto users = must(list_teams(db, acme))[1].id;
  const auto made = must(
      create_service_account(db, acme, {.name = "ci", .is_admin = true, .teams = {users}}, kNow));
  EXPECT_THAT(made.teams, ElementsAre(users));
  EXPECT_EQ(create_service_account(db, acme, {.name = "ci"}, kNow).error().code,
            ErrorCode::conflict);
  EXPECT_EQ(create_service_account(db, acme, {.name = "cd", .teams = {"x"}}, kNow).error().code,
            ErrorCode::not_found);
  must(create_service_account(db, sample.other.number, {.name = "ci"}, kNow));
  const auto key = must(create_user_key(db, acme, made.id, {.name = "k"}, kNow));
  EXPECT_TRUE(must(key_of_account(db, acme, key.key.id)).is_of_service_account);
  const auto caller = must(identify(db, key.text, kNow)).caller;
  ASSERT_TRUE(caller);
  EXPECT_TRUE(caller->is_service_account);
  EXPECT_TRUE(caller->is_admin);
  EXPECT_FALSE(caller->is_system_admin);
  EXPECT_EQ(caller->user_id, made.id);
  must(set_service_account_disabled(db, acme, made.id, true));
  EXPECT_FALSE(must(identify(db, key.text, kNow)).caller);
  must(set_service_account_disabled(db, acme, made.id, false));
  EXPECT_TRUE(must(identify(db, key.text, kNow)).caller);
  const auto plain = must(update_service_account(db, acme, made.id, {.name = "cd"}));
  EXPECT_THAT(plain.teams, IsEmpty());
  EXPECT_FALSE(plain.is_admin);
  must(remove_service_account(db, acme, made.id));
  EXPECT_FALSE(must(identify(db, key.text, kNow)).caller);
  EXPECT_THAT(must(list_service_accounts(db, acme)), IsEmpty());
  EXPECT_EQ(remove_service_account(db, acme, made.id).error().code, ErrorCode::not_found);
}

TEST_P(AccountContract, AnInvitationWorksOnceAndForSevenDays) {
  const auto acme = sample.acme.number;
  const auto first = must(invite(db, acme, {.email = "Zoe@acme.example"}, kNow));
  const auto second = must(invite(db, acme, {.email = "zoe@acme.example", .is_admin = true}, kNow));
  EXPECT_EQ(second.invitation.user_id, first.invitation.user_id);
  const auto is_valid = [&](const Secret& token, Micros now) {
    return find_invitation(db, token, now).has_value();
  };
  EXPECT_FALSE(is_valid(first.token, kNow)) << "a new one revokes the older";
  EXPECT_TRUE(is_valid(second.token, kNow + kInvitationLife - 1));
  EXPECT_FALSE(is_valid(second.token, kNow + kInvitationLife));
  EXPECT_EQ(must(list_invitations(db, acme)).size(), 1U);
  EXPECT_THAT(must(list_invitations(db, sample.other.number)), IsEmpty());
  const auto zoe = must(accept_as_new_user(db, second.token, "zoe", "phc", kNow));
  EXPECT_EQ(zoe.id, first.invitation.user_id) << "Terraform keeps the id";
  EXPECT_TRUE(must(find_member(db, acme, zoe.id))->is_admin);
  for (const auto* token : {&first.token, &second.token}) {
    const auto used = accept_as_new_user(db, *token, "zed", "phc", kNow);
    EXPECT_EQ(used.error().code, ErrorCode::not_found);
    EXPECT_EQ(used.error().message, find_invitation(db, Secret(), kNow).error().message);
  }
  EXPECT_EQ(invite(db, acme, {.email = "nobody"}, kNow).error().code, ErrorCode::invalid_argument);
}

TEST_P(AccountContract, AnInvitationIsChangedWithdrawnAndOfOneAccount) {
  const auto acme = sample.acme.number;
  const auto other = sample.other.number;
  const auto issued = must(invite(db, acme, {.email = "zoe@acme.example"}, kNow));
  const auto& id = issued.invitation.user_id;
  EXPECT_FALSE(must(invitation_of_user(db, other, id)));
  EXPECT_EQ(revoke_invitation(db, other, id).error().code, ErrorCode::not_found);
  EXPECT_EQ(set_invitation_admin(db, other, id, true).error().code, ErrorCode::not_found);
  const auto changed = must(change_invitation(db, acme, id, {.email = "z@acme.example"}, kNow));
  EXPECT_FALSE(find_invitation(db, issued.token, kNow)) << "its link went to the older address";
  must(set_invitation_admin(db, acme, id, true));
  const auto joined = must(accept_as_user(db, changed.token, sample.eve.id, kNow));
  EXPECT_EQ(joined.number, acme);
  EXPECT_TRUE(must(find_member(db, acme, sample.eve.id))->is_admin);
  const auto again = must(invite(db, acme, {.email = "e@acme.example"}, kNow));
  EXPECT_EQ(accept_as_user(db, again.token, sample.eve.id, kNow).error().code, ErrorCode::conflict);
  const auto last = must(invite(db, acme, {.email = "w@acme.example"}, kNow));
  must(revoke_invitation(db, acme, last.invitation.user_id));
  EXPECT_FALSE(find_invitation(db, last.token, kNow));
}

TEST_P(AccountContract, TheLastAdministratorStays) {
  const auto acme = sample.acme.number;
  EXPECT_EQ(keep_administrator(db, acme, sample.ann.id).error().code, ErrorCode::conflict);
  EXPECT_EQ(remove_user(db, sample.ann.id).error().code, ErrorCode::conflict);
  EXPECT_TRUE(keep_administrator(db, acme, sample.bob.id)) << "no administrator";
  must(put_member(db, acme, sample.bob.id, true));
  EXPECT_TRUE(keep_administrator(db, acme, sample.ann.id));
  EXPECT_EQ(remove_user(db, sample.ann.id).error().code, ErrorCode::conflict)
      << "the last one of the installation";
  must(set_disabled(db, sample.bob.id, true));
  EXPECT_EQ(keep_administrator(db, acme, sample.ann.id).error().code, ErrorCode::conflict)
      << "the other one is disabled";
  must(remove_user(db, sample.eve.id));
  EXPECT_TRUE(is_refused(sample.eve_key));
  EXPECT_EQ(user_of_id(db, sample.eve.id).error().code, ErrorCode::not_found);
}

TEST_P(AccountContract, ATeamIsRenamedUnlessItIsBuiltIn) {
  const auto acme = sample.acme.number;
  const auto id = must(create_team(db, acme, "web"));
  must(create_team(db, acme, "api"));
  must(rename_team(db, acme, id, "shop"));
  EXPECT_EQ(must(list_teams(db, acme))[2].name, "shop");
  EXPECT_EQ(rename_team(db, acme, id, "api").error().code, ErrorCode::conflict);
  EXPECT_EQ(rename_team(db, acme, id, "Shop").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(rename_team(db, sample.other.number, id, "x").error().code, ErrorCode::not_found);
  const auto admins = must(list_teams(db, acme))[0].id;
  EXPECT_EQ(rename_team(db, acme, admins, "x").error().code, ErrorCode::invalid_argument);
}

TEST_P(AccountContract, TheTeamsOfAUserAreThoseOfItsAccount) {
  EXPECT_EQ(must(team_ids_of(db, sample.acme.number, sample.ann.id)).size(), 2U);
  EXPECT_EQ(must(team_ids_of(db, sample.acme.number, sample.bob.id)).size(), 1U);
  EXPECT_THAT(must(team_ids_of(db, sample.acme.number, sample.eve.id)), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Engines, AccountContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

struct FirstStartContract : testing::TestWithParam<Engine> {
  StoreBed bed{GetParam()};
  store::Connection& db = bed.connection();
  std::vector<std::string> published;

  Result<FirstStart> start(const FirstStartSettings& settings, bool can_publish = true) {
    Result<FirstStart> outcome = FirstStart{};
    const auto done = db.transact([&]() -> Result<void> {
      outcome = first_start(
          db, settings,
          [&](const std::string& name, const Secret& password) -> Result<void> {
            if (!can_publish) return fail(ErrorCode::unavailable, "the disk is full");
            published.push_back(name + " " + std::string(password.reveal()));
            return {};
          },
          kNow);
      if (!outcome) return std::unexpected(outcome.error());
      return {};
    });
    if (!done) return std::unexpected(done.error());
    return outcome;
  }
};

TEST_P(FirstStartContract, MakesOneAdministratorWithAGeneratedPassword) {
  EXPECT_EQ(instance_id(db).error().code, ErrorCode::not_found);
  const auto first = must(start({}));
  EXPECT_TRUE(first.created_administrator);
  EXPECT_EQ(first.instance.size(), 24U);
  EXPECT_EQ(must(instance_id(db)), first.instance);
  ASSERT_EQ(published.size(), 1U);
  const auto admin = must(user_of_name(db, "admin"));
  EXPECT_TRUE(admin.is_system_admin);
  EXPECT_EQ("admin ", published[0].substr(0, 6));
  EXPECT_TRUE(is_password_of(admin.password, Secret(published[0].substr(6))));
  const auto account = must(account_of_name(db, "default"));
  EXPECT_THAT(account.admins, ElementsAre(admin.id));

  const auto second = must(start({}));
  EXPECT_FALSE(second.created_administrator);
  EXPECT_EQ(second.instance, first.instance);
  EXPECT_EQ(published.size(), 1U);
}

TEST_P(FirstStartContract, AGivenPasswordIsNotPublished) {
  must(start({.account = "acme",
              .administrator = "root",
              .email = {},
              .password = Secret(std::string("from a file"))}));
  EXPECT_THAT(published, IsEmpty());
  EXPECT_TRUE(
      is_password_of(must(user_of_name(db, "root")).password, Secret(std::string("from a file"))));
}

TEST_P(FirstStartContract, AC_36_APasswordThatNobodyGotIsNotStored) {
  EXPECT_FALSE(start({}, false));
  EXPECT_FALSE(must(has_users(db)));
  EXPECT_THAT(must(list_accounts(db)), IsEmpty());
  EXPECT_FALSE(start({.email = {}, .password = Secret(std::string("short"))}));
  EXPECT_FALSE(must(has_users(db)));
  EXPECT_TRUE(must(start({})).created_administrator);
}

INSTANTIATE_TEST_SUITE_P(Engines, FirstStartContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

TEST(FirstStartFile, ThePasswordIsWrittenOnceForItsOwner) {
  const test::TempDir folder;
  const auto path = (folder / "password").string();
  const auto publish = publish_to_file(path);
  test::LogCapture log;
  must(publish("admin", Secret(std::string("the password"))));
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(test::read_file(path), "the password\n");
  EXPECT_FALSE(log.text().contains("the password\""));
  EXPECT_TRUE(log.text().contains(path));
  EXPECT_EQ(publish("admin", Secret(std::string("another one"))).error().code, ErrorCode::conflict);
  EXPECT_EQ(test::read_file(path), "the password\n");
}

}  // namespace
}  // namespace gitops::control_plane_server
